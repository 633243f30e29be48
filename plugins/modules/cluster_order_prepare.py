#!/usr/bin/python
