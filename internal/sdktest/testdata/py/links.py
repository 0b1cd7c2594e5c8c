from urllib.parse import parse_qs, urlencode, urlsplit, urlunsplit

import httpx

from suite import MODE, NEW, absent, box, ok, same, test, unsupported, until

NO_HOSTS = "host names of sandboxes are there in domain mode alone"


def hosts():
    if MODE != "domain":

        def refuse():
            raise RuntimeError(NO_HOSTS)

        unsupported(refuse, ["host names"])


def changed(url, **params):
    """The same URL with another parameter, or with one letter of the signature changed."""
    u = urlsplit(url)
    q = {k: v[0] for k, v in parse_qs(u.query).items()}
    if not params:
        sign = q["signature"]
        params = {"signature": sign[:-2] + ("B" if sign[-2] == "A" else "A") + sign[-1]}
    return urlunsplit(u._replace(query=urlencode({**q, **params})))


@test
def upload_url():
    s = box()
    url = s.upload_url("up/a.txt", use_signature_expiration=100)
    same(httpx.post(changed(url), files={"file": b"bad"}).status_code, 401, "a signature with one letter changed")
    same(httpx.post(url, files={"file": b"sent"}).status_code, 200, "status")
    same(s.files.read("up/a.txt"), "sent", "content")


@test
def download_url():
    s = box()
    s.files.write("a.txt", "kept")
    url = s.download_url("a.txt")
    got = httpx.get(url)
    same((got.status_code, got.text), (200, "kept"), "answer")
    same(httpx.get(changed(url)).status_code, 401, "a signature with one letter changed")
    same(httpx.get(changed(url, path="b.txt")).status_code, 401, "a signature for another path")


@test
def url_expired():
    s = box()
    s.files.write("a.txt", "kept")
    url = s.download_url("a.txt", use_signature_expiration=1)
    until("it expires", lambda: httpx.get(url).status_code == 401)
    same(httpx.get(s.download_url("a.txt", use_signature_expiration=100)).status_code, 200, "one that has not")


def serving(**opts):
    s = box(**opts)
    s.files.write("www/index.html", "hello from inside")
    s.commands.run("cd www && exec python3 -m http.server 8080", background=True, timeout=0)
    return s, f"https://{s.get_host(8080)}/"


@test
def host_port():
    hosts()
    _, url = serving()
    until("the program inside answers", lambda: httpx.get(url).status_code == 200)
    same(httpx.get(url).text, "hello from inside", "text")


@test
def host_private():
    absent(NEW)
    hosts()
    s, url = serving(network={"allow_public_traffic": False})
    ok(s.traffic_access_token, "there is no token")
    headers = {"E2B-Traffic-Access-Token": s.traffic_access_token}
    until("the program inside answers", lambda: httpx.get(url, headers=headers).status_code == 200)
    ok(httpx.get(url).status_code in (401, 403), "it answers without the token")
