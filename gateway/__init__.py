"""Peergate: the authorization gateway between agents and what they know about people."""
