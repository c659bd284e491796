"""Pods come and go while programs are killed. Afterwards nothing may be left, lost or given twice."""
