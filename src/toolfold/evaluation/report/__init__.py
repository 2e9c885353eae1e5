"""Reports: what was measured, as one page that can be mailed, printed and read aloud."""
