"""What work runs on: memory, disk and time.

A budget and a buffer pool of memory, a cache, files that are whole or not there at all, serialisation, workers,
progress, estimates of cost, and the words of messages.
"""
