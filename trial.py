
from matrix.statistics import judging as J
def judge(h):
    links=J.Links(h.source,h.destination,h.site)
    out=[]
    for name,t in h.tests.items():
        if not len(t.started): continue
        tests=J.Tests(t.link,t.started,t.log_rate,t.blamed)
        start=int(t.started[0])//J.DAY_MS*J.DAY_MS
        out+=J.History(links).judge(tests,start,h.now+1)
    return J.together(out, links) if hasattr(J,'together') else out
