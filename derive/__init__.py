"""Events in, facts out: what a person's decisions say, without a clock, a file or a network."""
