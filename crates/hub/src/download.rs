//! What is asked of a hub, and how files come whole into the cache.

use crate::cache::{Folder, is_commit, is_name};
use crate::pace::Paced;
use crate::progress::Bar;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use ureq::http::{Method, Request, Response, StatusCode, Uri, header, uri::Scheme};
use ureq::{Agent, Body};

/// The longest list of a repository's files.
const MAX_LIST: u64 = 64 << 20;
const MAX_REDIRECTS: usize = 10;
/// How often a file is asked for again.
const RETRIES: u32 = 3;

/// What stands in the way.
pub(crate) enum Trouble {
    /// The hub, which may do better the next time.
    Passing(String),
    /// The hub.
    Lasting(String),
    /// This machine.
    Disk(PathBuf, std::io::Error),
}

use Trouble::{Disk, Lasting, Passing};

/// A hub, and what asks it.
pub(crate) struct Client<'a> {
    pub(crate) agent: Agent,
    pub(crate) endpoint: &'a str,
    pub(crate) token: Option<&'a str>,
    /// How long a body may take for its least part ([`Paced`]).
    pub(crate) patience: Duration,
    /// How long another process is waited for that fetches the same file and does not go on.
    pub(crate) limit: Duration,
    pub(crate) shows_progress: bool,
}

/// An agent that waits so long at most: to connect, for the head of an answer, and for more of a body.
pub(crate) fn agent(limit: Duration) -> Agent {
    let (limit, connect) = (Some(limit), Some(limit.min(Duration::from_secs(30))));
    let config = Agent::config_builder().http_status_as_error(false).max_redirects(0);
    let config = config.timeout_resolve(connect).timeout_connect(connect).timeout_send_request(limit);
    let config = config.timeout_recv_response(limit).timeout_per_read(limit).timeout_per_write(limit);
    config.user_agent(concat!("diptych-hub/", env!("CARGO_PKG_VERSION"))).build().into()
}

/// A path as it is written in an address.
pub(crate) fn escaped(path: &str, keeps: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || keeps.as_bytes().contains(&byte) {
            text.push(byte.into());
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

/// Whom an address belongs to: the token of one is none of another's.
fn origin(address: &Uri) -> Option<(Scheme, String, u16)> {
    let scheme = address.scheme()?.clone();
    let port = address.port_u16().unwrap_or(if scheme == Scheme::HTTPS { 443 } else { 80 });
    Some((scheme, address.host()?.to_ascii_lowercase(), port))
}

fn parsed(address: &str) -> Result<Uri, Trouble> {
    address.parse().map_err(|error| Lasting(format!("{address:?} is no address: {error}")))
}

fn text<'a>(response: &'a Response<Body>, name: &str) -> Option<&'a str> {
    response.headers().get(name)?.to_str().ok()
}

/// Where a redirection leads.
fn redirected(from: &Uri, response: &Response<Body>) -> Result<Option<Uri>, Trouble> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let to = text(response, "location").unwrap_or_default();
    let (scheme, authority) = (from.scheme_str().unwrap_or_default(), from.authority());
    let to = match (to.strip_prefix("//"), to.starts_with('/')) {
        (Some(rest), _) => parsed(&format!("{scheme}://{rest}"))?,
        (None, true) => parsed(&format!("{scheme}://{}{to}", authority.map_or("", |own| own.as_str())))?,
        (None, false) => parsed(to)?,
    };
    match (scheme, to.scheme_str()) {
        (_, Some("https")) | ("http", Some("http")) => Ok(Some(to)),
        _ => Err(Lasting(format!("found a redirection to {to}, wanted one to an https address"))),
    }
}

/// What the hub says of a file.
#[derive(Default)]
struct About {
    commit: Option<String>,
    etag: Option<String>,
    size: Option<u64>,
}

impl About {
    /// Takes what is new in an answer. The etag and the length of a redirection are its own.
    fn take(&mut self, response: &Response<Body>) -> bool {
        let own = |name| text(response, name).filter(|_| response.status().is_success());
        let etag = text(response, "x-linked-etag").or_else(|| own("etag"));
        let etag = etag.map(|etag| etag.trim_start_matches("W/").trim_matches('"').to_owned());
        let size = text(response, "x-linked-size").or_else(|| own("content-length"));
        self.commit = self.commit.take().or_else(|| text(response, "x-repo-commit").map(str::to_owned));
        self.etag = self.etag.take().or(etag);
        self.size = self.size.or_else(|| size?.parse().ok());
        self.commit.is_some() && self.etag.is_some() && self.size.is_some()
    }

    fn checked(self, revision: &str) -> Result<(String, String, u64), Trouble> {
        let name = |what: &str, found: Option<String>| match found {
            Some(found) if is_name(&found) => Ok(found),
            Some(found) => Err(Lasting(format!("found the {what} {found:?}, wanted a plain name"))),
            None => Err(Lasting(format!("found no {what} of the file"))),
        };
        let (commit, etag) = (name("commit", self.commit)?, name("etag", self.etag)?);
        if is_commit(revision) && commit != revision {
            return Err(Lasting(format!("found a file of the commit {commit}, wanted one of {revision}")));
        }
        Ok((commit, etag, self.size.ok_or_else(|| Lasting("found no length of the file".to_owned()))?))
    }
}

/// Tries again what may pass.
fn patiently<T>(mut attempt: impl FnMut() -> Result<T, Trouble>) -> Result<T, Trouble> {
    for turn in 0..RETRIES {
        match attempt() {
            Err(Passing(_)) => std::thread::sleep(Duration::from_millis(300 << turn)),
            done => return done,
        }
    }
    attempt()
}

impl Client<'_> {
    /// Asks for an address, and for those that it leads to until one has the answer or `is_enough`. The token goes to the
    /// endpoint's origin alone.
    fn ask(
        &self,
        method: Method,
        address: &str,
        from: u64,
        mut is_enough: impl FnMut(&Response<Body>) -> bool,
    ) -> Result<Response<Body>, Trouble> {
        let own = origin(&parsed(self.endpoint)?);
        let mut address = parsed(address)?;
        for _ in 0..=MAX_REDIRECTS {
            let mut request = Request::builder().method(method.clone()).uri(&address);
            request = request.header(header::ACCEPT_ENCODING, "identity");
            if let Some(token) = self.token.filter(|_| origin(&address) == own) {
                request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
            }
            if from > 0 {
                request = request.header(header::RANGE, format!("bytes={from}-"));
            }
            let request = request.body(()).map_err(|error| Lasting(error.to_string()))?;
            let response = self.agent.run(request).map_err(|error| Passing(error.to_string()))?;
            let next = redirected(&address, &response)?;
            if is_enough(&response) {
                return Ok(response);
            }
            let status = response.status();
            match next {
                Some(next) => address = next,
                None if status.is_success() || (from > 0 && status == StatusCode::RANGE_NOT_SATISFIABLE) => {
                    return Ok(response);
                }
                None => {
                    let why = text(&response, "x-error-message");
                    let message =
                        format!("status {status}{}", why.map_or(String::new(), |why| format!(": {why}")));
                    let passes = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
                    return Err(if passes { Passing(message) } else { Lasting(message) });
                }
            }
        }
        Err(Lasting(format!("found more than {MAX_REDIRECTS} redirections")))
    }

    /// The files that a repository has.
    pub(crate) fn list(&self, repository: &str, revision: &str) -> Result<Vec<String>, Trouble> {
        let address = format!("{}/api/models/{repository}/revision/{}", self.endpoint, escaped(revision, ""));
        // Once: without a hub, the cache may know.
        let body = self.ask(Method::GET, &address, 0, |_| false)?.into_body();
        let mut list = Vec::new();
        let mut body = Paced::new(body.into_with_config().limit(MAX_LIST).reader(), self.patience);
        body.read_to_end(&mut list).map_err(|error| Passing(error.to_string()))?;
        let list: serde_json::Value =
            serde_json::from_slice(&list).map_err(|error| Lasting(error.to_string()))?;
        let files = list.get("siblings").and_then(serde_json::Value::as_array);
        let files = files.ok_or_else(|| Lasting("found no siblings, wanted a list of files".to_owned()))?;
        Ok(files.iter().filter_map(|file| Some(file.get("rfilename")?.as_str()?.to_owned())).collect())
    }

    /// Fetches a file into the cache. Gives its path, and the commit that it is of.
    pub(crate) fn fetch(
        &self,
        folder: &Folder,
        repository: &str,
        revision: &str,
        file: &str,
    ) -> Result<(PathBuf, String), Trouble> {
        let address = |revision| {
            let (revision, file) = (escaped(revision, ""), escaped(file, "/"));
            format!("{}/{repository}/resolve/{revision}/{file}", self.endpoint)
        };
        let (commit, etag, size) = patiently(|| {
            let mut about = About::default();
            self.ask(Method::HEAD, &address(revision), 0, |response| about.take(response))?;
            about.checked(revision)
        })?;
        let (blob, part) = folder.contents(&etag);
        if !is_whole(&blob, size) {
            self.fill(&address(&commit), file, size, &blob, &part)?;
        }
        let failed = |error| Disk(blob.clone(), error);
        let path = folder.link(&commit, file, &etag).map_err(failed)?;
        if !is_commit(revision) {
            folder.set_commit(revision, &commit).map_err(failed)?;
        }
        Ok((path, commit))
    }

    /// Puts a file of this length in the place of `blob`. Meanwhile, and after a failure, `part` has what came.
    fn fill(&self, address: &str, file: &str, size: u64, blob: &Path, part: &Path) -> Result<(), Trouble> {
        let disk = |error| Disk(part.to_owned(), error);
        part.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(disk)?;
        let mut to = OpenOptions::new().create(true).truncate(false).write(true).open(part).map_err(disk)?;
        self.lock(&to, part)?;
        if !is_whole(blob, size) {
            let mut bar = Bar::new(file, size, self.shows_progress);
            patiently(|| self.receive(address, size, &mut to, part, &mut bar))?;
            to.sync_all().and_then(|()| std::fs::rename(part, blob)).map_err(disk)?;
        } else {
            // Another process fetched it. What was opened above may be a new file, which nobody needs.
            let _ = std::fs::remove_file(part);
        }
        Ok(())
    }

    /// Waits until no other process fetches a file, as long as that one goes on.
    fn lock(&self, file: &File, path: &Path) -> Result<(), Trouble> {
        let disk = |error| Disk(path.to_owned(), error);
        let (mut length, mut since) = (0, Instant::now());
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(()),
                Err(TryLockError::Error(error)) => return Err(disk(error)),
                Err(TryLockError::WouldBlock) => {}
            }
            let now = file.metadata().map_err(disk)?.len();
            if now != length {
                (length, since) = (now, Instant::now());
            } else if since.elapsed() > self.limit {
                let path = path.display();
                return Err(Lasting(format!("another process has locked {path}, and has not gone on")));
            }
            std::thread::sleep(Duration::from_millis(50).min(self.limit));
        }
    }

    /// Fetches what is missing at the end of a file.
    fn receive(
        &self,
        address: &str,
        size: u64,
        to: &mut File,
        path: &Path,
        bar: &mut Bar,
    ) -> Result<(), Trouble> {
        let disk = |error| Disk(path.to_owned(), error);
        let emptied = |to: &mut File| to.set_len(0).and_then(|()| to.seek(SeekFrom::Start(0))).map_err(disk);
        let mut at = to.seek(SeekFrom::End(0)).map_err(disk)?;
        if at > size {
            at = emptied(to)?;
        }
        if at == size {
            return Ok(());
        }
        let response = self.ask(Method::GET, address, at, |_| false)?;
        let range = text(&response, "content-range").unwrap_or_default();
        match response.status() {
            // Also where a part was asked for.
            StatusCode::OK => at = emptied(to)?,
            StatusCode::PARTIAL_CONTENT if range == format!("bytes {at}-{}/{size}", size - 1) => {}
            status => {
                let found = format!(
                    "found the status {status} and the range {range:?}, wanted the bytes from {at} of {size}"
                );
                emptied(to)?;
                return Err(if at > 0 { Passing(found) } else { Lasting(found) });
            }
        }
        let mut body = Paced::new(response.into_body().into_reader(), self.patience);
        let mut block = vec![0; 1 << 16];
        loop {
            bar.show(at);
            let count = match body.read(&mut block) {
                Ok(count) => count,
                Err(error) => return Err(Passing(format!("found {at} of {size} bytes: {error}"))),
            };
            at += count as u64;
            if at > size {
                emptied(to)?;
                return Err(Lasting(format!("found more than {size} bytes")));
            }
            match block.get(..count) {
                Some(new) if count > 0 => to.write_all(new).map_err(disk)?,
                _ if at == size => return Ok(()),
                _ => return Err(Passing(format!("found {at} of {size} bytes"))),
            }
        }
    }
}

/// Whether a file is there with this length.
fn is_whole(path: &Path, size: u64) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.len() == size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_plain_letters() {
        assert_eq!(escaped("a b/c#1?%~\u{e4}.x", "/"), "a%20b/c%231%3F%25~%C3%A4.x");
        assert_eq!(escaped("refs/pr/1", ""), "refs%2Fpr%2F1");
    }

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        let of = |address: &str| origin(&address.parse().expect("an address"));
        assert_eq!(of("https://hub.example/x"), of("https://HUB.example:443/y"));
        let others = [
            "http://hub.example/x",
            "https://hub.example:444/",
            "https://cdn.hub.example/",
            "https://hub.example.org/",
        ];
        for other in others {
            assert_ne!(of("https://hub.example/x"), of(other), "{other}");
        }
    }

    #[test]
    fn redirections_stay_with_https() {
        let to = |from: &str, location: &str| {
            let response = Response::builder().status(302).header("location", location);
            let response = response.body(Body::builder().data("")).expect("a response");
            redirected(&from.parse().expect("an address"), &response).ok().flatten().map(|to| to.to_string())
        };
        let (secure, plain) = ("https://hub.example:8/a/b?c", "http://hub.example/a");
        for (from, location, wanted) in [
            (secure, "/x?y=%20", Some("https://hub.example:8/x?y=%20")),
            (secure, "//cdn.example/x", Some("https://cdn.example/x")),
            (secure, "https://cdn.example/x", Some("https://cdn.example/x")),
            (secure, "http://hub.example:8/x", None),
            (secure, "ftp://hub.example/x", None),
            (secure, "x", None),
            (secure, "", None),
            (plain, "/x", Some("http://hub.example/x")),
            (plain, "http://cdn.example/x", Some("http://cdn.example/x")),
            (plain, "https://cdn.example/x", Some("https://cdn.example/x")),
        ] {
            assert_eq!(to(from, location).as_deref(), wanted, "{from} to {location}");
        }
    }
}
