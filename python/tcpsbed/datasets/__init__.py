"""Recorded input: motions, frames of sound and picture, captures of traffic, traces of links.

```text
recordings  hand motions, robot logs, mouse logs, csv  -> values at a flow's rate   (track, resample, formats)
frames      sound, picture, any file                   -> bytes and where frames begin
captures    pcap, pcapng, csv of (time, bytes)         -> background traffic        (pcap, pcapng)
traces      delivery opportunities, frame sizes        -> links and video sources
builtin     what ships with tcpsbed
```

Every reader raises `tcpsbed.errors.DataError` with the file, the line or byte offset, what was found there
and what to do; none trusts a length that a file states about itself.
"""
