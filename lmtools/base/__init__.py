"""Foundations that every room stands on: errors, files, options, settings of a call, worker
processes and the queue of a cluster. Nothing here knows of language models or lists, or imports
torch.
"""
