"""What `./run` shows: what is missing, what there is to do, how far it is, what came out.

The launcher itself needs nothing but the standard library; what it can leave to the environment that it makes is here.
"""
