"""Eval cases: a workflow's assertions on fixed inputs, offline. Pure Python, no Django.

document = read_document(text)
result = Evaluation(fail_fast=True).run(document, CaseEnvironment())
"""
