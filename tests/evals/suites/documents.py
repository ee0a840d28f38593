"""Workflow documents with eval cases."""

FIXED = """\
version: "1.0"
id: greeter
blocks:
  greet:
    type: code
    code: |
      def main(data):
          return "Hello " + data["inputs"]["name"]
    assertions:
      - {type: contains, value: Hello}
      - {type: latency, threshold: 60000}
  shout:
    type: code
    depends: greet
    code: |
      def main(data):
          return data["greet"].upper() + "!"
eval:
  threshold: 0.5
  cases:
    - id: good
      description: A frozen greeting.
      fixtures: {greet: Hello Ada}
      expected:
        greet:
          - {type: contains, value: Ada}
    - id: bad
      fixtures: {greet: Hello Bob}
      expected:
        greet:
          - {type: contains, value: Bob}
          - {type: contains, value: Ada, weight: 3}
"""

RUN_FOR_REAL = """\
    - id: real
      inputs: {name: Grace}
      expected:
        shout:
          - {type: equals, value: "HELLO GRACE!"}
    - id: half
      fixtures: {greet: hi}
      inputs: {name: nobody}
      expected:
        shout:
          - {type: equals, value: "HI!"}
"""
MIXED = FIXED + RUN_FOR_REAL
