"""No page is heavy, whatever it has to show."""

import pytest

from tests.callers import user_in
from tests.evals.heavy import heavy_site
from tests.weights import weight

MOST_BYTES = 200_000


@pytest.mark.parametrize("blocks", [12, 100])
def test_no_page_is_heavy_whatever_it_has_to_show(db, client, blocks):
    paths = heavy_site(blocks)
    client.force_login(user_in("admin"))
    weights = {path: weight(client, path) for path in paths}
    assert {path: found for path, found in weights.items() if found > MOST_BYTES} == {}
