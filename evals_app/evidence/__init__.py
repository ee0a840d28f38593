"""When to say "worse": sequential evidence, per block, that something has lastingly changed."""
