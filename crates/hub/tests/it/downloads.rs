//! Files come whole or not at all, the token stays with the hub, and nothing is waited for without an end.

use crate::server::{Answer, COMMIT, Request, Server};
use diptych_hub::{Error, Hub};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const NAME: &str = "some/net:b.tflite";

fn bytes() -> Vec<u8> {
    (0..200_000u32).map(|at| (at * 7 % 251) as u8).collect()
}

/// The paths of all files in a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in folder.read_dir().into_iter().flatten() {
        let path = entry.expect("an entry").path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort_unstable();
    found
}

/// That nothing passes for a file of the hub.
fn assert_nothing_is_whole(cache: &Path) {
    let parts: Vec<PathBuf> =
        files(cache).into_iter().filter(|path| !path.to_str().unwrap().ends_with(".diptych-part")).collect();
    assert_eq!(parts, Vec::<PathBuf>::new());
    let hub = Hub::new("http://127.0.0.1:1", cache).offline(true);
    assert!(matches!(hub.fetch(NAME), Err(Error::Offline { .. })));
}

/// A hub whose answers for contents are the given ones, the last one for all after it. It also gives the whole file's head.
fn answering(answers: impl Fn(usize, &Request) -> Answer + Send + Sync + 'static) -> Server {
    let turn = AtomicUsize::new(0);
    Server::new(move |request| match request.method.as_str() {
        "HEAD" => Answer::whole(&bytes(), "tag", COMMIT),
        _ => answers(turn.fetch_add(1, Ordering::Relaxed), request),
    })
}

fn part(request: &Request) -> Answer {
    Answer::part(&bytes(), "tag", COMMIT, request)
}

#[test]
fn the_token_goes_to_the_hub_alone() {
    let cdn = Server::new(|request| Answer::part(&bytes(), "of the cdn", "of the cdn", request));
    for linked in ["x-linked-size: 200000\r\n", ""] {
        let location = format!("{}/a/blob?signature=x", cdn.endpoint);
        let hub = Server::new(move |request| {
            if request.address.starts_with("/some/net/") {
                // As renamed repositories have it.
                let location = request.address.replace("/some/net/", "/other/net/");
                return Answer::new("307 Temporary Redirect", format!("location: {location}\r\n"), "");
            }
            let headers = format!(
                "location: {location}\r\nx-repo-commit: {COMMIT}\r\nx-linked-etag: \"tag\"\r\n{linked}"
            );
            Answer::new("302 Found", headers, "Found. Redirecting")
        });
        let cache = tempfile::tempdir().expect("a folder");
        let path = Hub::new(&hub.endpoint, cache.path()).token("hf_secret").fetch(NAME).expect("a file");
        assert_eq!(std::fs::read(&path).expect("a file"), bytes());
        let repository = cache.path().join("models--some--net");
        assert_eq!(path, repository.join(format!("snapshots/{COMMIT}/b.tflite")));
        let blob = repository.join("blobs/tag");
        assert_eq!(path.canonicalize().expect("a link"), blob.canonicalize().expect("a file"));
        assert_eq!(std::fs::read_to_string(repository.join("refs/main")).expect("a file"), COMMIT);
        assert_eq!(files(cache.path()).len(), 3, "{:?}", files(cache.path()));

        let (own, other) = (hub.requests(), cdn.requests());
        assert!(own.len() == 4 && !other.is_empty());
        assert!(own.iter().all(|request| request.token.as_deref() == Some("Bearer hf_secret")), "{own:?}");
        assert!(other.iter().all(|request| request.token.is_none()), "{other:?}");
    }
}

#[test]
fn an_interrupted_file_is_continued() {
    let server = answering(|turn, request| match turn {
        0 => part(request).cut(50_000),
        1 => Answer::new("503 Service Unavailable", "", ""),
        _ => part(request),
    });
    let cache = tempfile::tempdir().expect("a folder");
    let path = Hub::new(&server.endpoint, cache.path()).fetch(NAME).expect("a file");
    assert_eq!(std::fs::read(path).expect("a file"), bytes());
    let from: Vec<_> = server.requests().iter().skip(1).map(|request| request.from).collect();
    assert_eq!(from, [None, Some(50_000), Some(50_000)]);
}

#[test]
fn what_came_is_kept_for_the_next_call() {
    let server = answering(|turn, request| match turn {
        0 => part(request).cut(50_000),
        1..4 => Answer::new("503 Service Unavailable", "", ""),
        _ => part(request),
    });
    let cache = tempfile::tempdir().expect("a folder");
    let hub = Hub::new(&server.endpoint, cache.path());
    let error = hub.fetch(NAME).expect_err("no file").to_string();
    assert!(error.starts_with("b.tflite of some/net of http://127.0.0.1:"), "{error}");
    assert!(error.ends_with("status 503 Service Unavailable"), "{error}");
    assert_nothing_is_whole(cache.path());
    server.requests();
    let path = hub.fetch(NAME).expect("a file");
    assert_eq!(std::fs::read(path).expect("a file"), bytes());
    assert_eq!(server.requests()[1].from, Some(50_000));
}

#[test]
fn a_file_is_begun_again_where_its_end_does_not_come() {
    // A server that knows no parts; parts of something else; a part that is beyond the end.
    let odd: [fn() -> Answer; 3] = [
        || Answer::whole(&bytes(), "tag", COMMIT),
        || {
            Answer::new(
                "206 Partial Content",
                "content-range: bytes 40000-199999/200000\r\n",
                &bytes()[40_000..],
            )
        },
        || Answer::new("416 Range Not Satisfiable", "content-range: bytes */200000\r\n", ""),
    ];
    for (number, odd) in odd.into_iter().enumerate() {
        let server = answering(move |turn, request| match turn {
            0 => part(request).cut(50_000),
            1 => odd(),
            _ => part(request),
        });
        let cache = tempfile::tempdir().expect("a folder");
        let path = Hub::new(&server.endpoint, cache.path()).fetch(NAME).expect("a file");
        assert!(std::fs::read(path).expect("a file") == bytes(), "{number}");
        let from: Vec<_> = server.requests().iter().skip(1).map(|request| request.from).collect();
        let wanted = [None, Some(50_000), None];
        assert_eq!(from, wanted[..if number == 0 { 2 } else { 3 }], "{number}");
    }
}

#[test]
fn a_file_of_another_length_is_an_error() {
    let short = answering(|_, _| Answer::new("200 OK", "", &bytes()[..50_000]));
    let long = answering(|_, _| Answer::new("200 OK", "", [bytes(), vec![1]].concat()));
    for (server, wanted) in [(short, "found 50000 of 200000 bytes"), (long, "found more than 200000 bytes")] {
        let cache = tempfile::tempdir().expect("a folder");
        let error = Hub::new(&server.endpoint, cache.path()).fetch(NAME).expect_err("another length");
        assert!(error.to_string().contains(wanted), "{error}");
        assert_nothing_is_whole(cache.path());
    }
}

#[test]
fn a_hub_that_falls_silent_is_an_error() {
    let in_body = answering(|_, request| Answer { stalls: true, ..part(request).cut(10_000) });
    // A connection that nobody takes.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let nobody = format!("http://{}", listener.local_addr().expect("an address"));
    for endpoint in [&in_body.endpoint, &nobody] {
        let cache = tempfile::tempdir().expect("a folder");
        let hub = Hub::new(endpoint, cache.path()).time_limit(Duration::from_millis(200));
        let begin = Instant::now();
        let error = hub.fetch(NAME).expect_err("silence").to_string();
        assert!(error.contains("timeout") && begin.elapsed() < Duration::from_secs(30), "{error}");
        assert_nothing_is_whole(cache.path());
    }
}

#[test]
fn a_slow_file_is_no_silent_one() {
    // Each piece comes within the limit, all of them do not.
    let server = answering(|_, request| Answer { pause: Some(Duration::from_millis(100)), ..part(request) });
    let cache = tempfile::tempdir().expect("a folder");
    let hub = Hub::new(&server.endpoint, cache.path()).time_limit(Duration::from_millis(700));
    let begin = Instant::now();
    let path = hub.fetch(NAME).expect("a file");
    assert_eq!(std::fs::read(path).expect("a file"), bytes());
    assert!(begin.elapsed() > Duration::from_millis(700));
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn a_hub_that_drips_is_not_followed_without_an_end() {
    // Each byte comes in time: of a file, of a list, of a head.
    let pause = Duration::from_millis(20);
    let drips = move |answer: Answer, line| Answer { drips: Some((line, pause)), ..answer };
    let file = answering(move |_, request| drips(part(request), 100));
    let list = Server::new(move |_| drips(Answer::new("200 OK", "", vec![b' '; 10_000]), 100));
    let head = Server::new(move |_| drips(Answer::whole(&bytes(), &"x".repeat(190), COMMIT), 1));
    for (server, name) in [(&file, NAME), (&list, "some/net"), (&head, NAME)] {
        let cache = tempfile::tempdir().expect("a folder");
        let hub = Hub::new(&server.endpoint, cache.path()).time_limit(Duration::from_millis(300));
        let begin = Instant::now();
        let error = hub.fetch(name).expect_err("a drip").to_string();
        assert!(error.contains("timeout") && begin.elapsed() < Duration::from_secs(30), "{error}");
        assert_nothing_is_whole(cache.path());
    }
    // What came is kept: a hub that is fast again goes on there.
    let once =
        answering(move |turn, request| if turn == 0 { drips(part(request), 100) } else { part(request) });
    let cache = tempfile::tempdir().expect("a folder");
    let hub = Hub::new(&once.endpoint, cache.path()).time_limit(Duration::from_millis(300));
    assert_eq!(std::fs::read(hub.fetch(NAME).expect("a file")).expect("a file"), bytes());
    assert!(once.requests().iter().any(|request| request.from.is_some_and(|from| from > 0)));
}

#[test]
fn names_that_command_a_terminal_are_refused() {
    let escape = "x\u{1b}[2J.onnx";
    // In the hub's list, in the cache, and where the name is given.
    let server = Server::of(&[(escape, bytes()), ("b.tflite", bytes())]);
    let cache = tempfile::tempdir().expect("a folder");
    let hub = Hub::new(&server.endpoint, cache.path());
    assert!(hub.fetch("some/net").expect("the other one").ends_with("b.tflite"));
    let snapshot = cache.path().join(format!("models--some--net/snapshots/{COMMIT}"));
    std::fs::write(snapshot.join(escape), b"").expect("a file");
    assert!(hub.clone().offline(true).fetch("some/net").expect("the other one").ends_with("b.tflite"));
    let error = hub.fetch(&format!("some/net:{escape}")).expect_err("no name").to_string();
    assert!(error.contains("a file of another form") && !error.contains('\u{1b}'), "{error:?}");
}

#[test]
fn names_of_a_server_do_not_lead_out_of_the_cache() {
    for (etag, commit) in [("../../../evil", COMMIT), ("tag", "../../evil"), ("", COMMIT), ("tag", "..")] {
        let server = Server::new(move |request| Answer::part(&bytes(), etag, commit, request));
        let folder = tempfile::tempdir().expect("a folder");
        let cache = folder.path().join("cache");
        let error = Hub::new(&server.endpoint, &cache).fetch(NAME).expect_err("no name").to_string();
        assert!(error.contains("wanted a plain name"), "{error}");
        assert!(files(folder.path()).is_empty());
    }
}

#[test]
fn a_commit_is_not_another_one() {
    let server = Server::new(|request| Answer::part(&bytes(), "tag", COMMIT, request));
    let cache = tempfile::tempdir().expect("a folder");
    let other = COMMIT.replace('0', "f");
    let hub = Hub::new(&server.endpoint, cache.path());
    let error = hub.fetch(&format!("some/net@{other}:b.tflite")).expect_err("another commit");
    assert!(
        error.to_string().contains(&format!("found a file of the commit {COMMIT}, wanted one of {other}"))
    );
    assert!(hub.fetch(&format!("some/net@{COMMIT}:b.tflite")).is_ok());
}

#[test]
fn redirections_end() {
    let server = Server::new(|_| Answer::new("302 Found", "location: /x\r\n", ""));
    let cache = tempfile::tempdir().expect("a folder");
    let error = Hub::new(&server.endpoint, cache.path()).fetch(NAME).expect_err("a circle");
    assert!(error.to_string().contains("more than 10 redirections"), "{error}");
}

#[test]
fn several_callers_get_one_file() {
    let server = answering(|_, request| {
        std::thread::sleep(Duration::from_millis(200));
        part(request)
    });
    let cache = tempfile::tempdir().expect("a folder");
    let hub = Hub::new(&server.endpoint, cache.path());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let path = hub.fetch(NAME).expect("a file");
                assert_eq!(std::fs::read(path).expect("a file"), bytes());
            });
        }
    });
    let contents = server.requests().iter().filter(|request| request.method == "GET").count();
    assert_eq!(contents, 1);
    assert_eq!(files(cache.path()).len(), 3, "{:?}", files(cache.path()));
}

#[test]
fn another_process_that_does_not_go_on_is_not_waited_for() {
    let server = answering(|_, request| part(request));
    let cache = tempfile::tempdir().expect("a folder");
    let hub = Hub::new(&server.endpoint, cache.path()).time_limit(Duration::from_millis(50));
    let blobs = cache.path().join("models--some--net/blobs");
    std::fs::create_dir_all(&blobs).expect("a folder");
    let other = std::fs::File::create(blobs.join("tag.diptych-part")).expect("a file");
    other.lock().expect("a lock");
    let start = Instant::now();
    let error = hub.fetch(NAME).expect_err("a lock").to_string();
    assert!(error.contains("another process has locked"), "{error}");
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    assert_nothing_is_whole(cache.path());
    drop(other);
    let path = hub.time_limit(Duration::MAX).fetch(NAME).expect("a file");
    assert_eq!(std::fs::read(path).expect("a file"), bytes());
}
