"""Proofs about policies, for every request and every store of the schema; needs the extra `prove`."""
