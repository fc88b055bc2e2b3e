"""Downtimes that sites announce elsewhere: asked for, read, matched with endpoints, and kept.

`pages` asks a source, `gocdb` and `osg` read what it answers into announcements, `matching` finds
whom they concern, `replacing` brings the rows of the source in line, and `importing` is all
of it in one go.
"""
