"""Tools for working on this collection: its environment, its gates, its demo and its benchmark."""
