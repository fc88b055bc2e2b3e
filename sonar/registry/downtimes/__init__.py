"""Downtimes that sites announce elsewhere: asked for, read, matched with endpoints, and kept.

`asking` gets the bytes of a source, `gocdb` and `osg` read them into announcements, `matching`
finds whom they concern, `replacing` brings the rows of the source in line, and `importing` is all
of it in one go.
"""
