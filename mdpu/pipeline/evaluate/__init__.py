"""From histories to verdicts. Every function that writes takes a plan, and the files to read and to
write.
"""
