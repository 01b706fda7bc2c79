"""What answers a path of the API."""

from genlock.api.paths import Paths


def paths() -> Paths[str]:
    found: Paths[str] = Paths()
    for method, path in (
        ("GET", "/v1/jobs"),
        ("POST", "/v1/jobs"),
        ("GET", "/v1/jobs/{job_id}"),
        ("GET", "/v1/jobs/newest/first"),
        ("POST", "/v1/jobs/{id}/cancel"),
        ("GET", "/v1/models/{model_id:path}"),
    ):
        found.add(method, path, f"{method} {path}")
    return found


def test_a_path_is_found_with_its_parameters() -> None:
    for method, path, expected in (
        ("GET", "/v1/jobs", ("GET /v1/jobs", {})),
        ("POST", "/v1/jobs", ("POST /v1/jobs", {})),
        ("GET", "/v1/jobs/1", ("GET /v1/jobs/{job_id}", {"job_id": "1"})),
        ("GET", "/v1/jobs/newest", ("GET /v1/jobs/{job_id}", {"job_id": "newest"})),
        ("GET", "/v1/jobs/newest/first", ("GET /v1/jobs/newest/first", {})),
        ("POST", "/v1/jobs/newest/cancel", ("POST /v1/jobs/{id}/cancel", {"id": "newest"})),
        ("GET", "/v1/models/a/b c/d", ("GET /v1/models/{model_id:path}", {"model_id": "a/b c/d"})),
        ("GET", "/v1/models/", ("GET /v1/models/{model_id:path}", {"model_id": ""})),
    ):
        found = paths().find(path)
        assert found is not None, path
        assert found.target(method) == expected, path


def test_a_path_that_is_longer_shorter_or_has_an_empty_segment_is_not_found() -> None:
    for path in (
        "",
        "/",
        "/v1",
        "/v1/",
        "/v1/jobs/",
        "/v1/jobs//cancel",
        "/v1/jobs/1/cancel/",
        "/v1/models",
        "v1/jobs",
    ):
        assert paths().find(path) is None, path


def test_another_method_is_refused_with_those_that_are_taken_and_head_is_answered_as_get() -> None:
    found = paths().find("/v1/jobs")
    assert found is not None
    assert found.target("DELETE") is None
    assert sorted(found.targets) == ["GET", "POST"]
    assert found.target("HEAD") == found.target("GET")
    cancel = paths().find("/v1/jobs/1/cancel")
    assert cancel is not None
    assert cancel.target("HEAD") is None
