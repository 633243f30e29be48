"""A stand-in for replication between clusters: it does to VolumeReplicationGroups what Ramen's cluster operator does, without storage.

The data of a volume are the lines of a ConfigMap, which a running application appends to. Nothing here is Ramen's code, and no disk exists.
"""
