"""Conformance suite for RayJobs (KubeRay) under Kueue: do Kueue's books match the pods that really exist?"""
