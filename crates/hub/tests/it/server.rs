//! A hub on this machine.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// What was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    pub method: String,
    pub address: String,
    /// The header `Authorization`.
    pub token: Option<String>,
    /// The header `Range`, `bytes=N-`.
    pub from: Option<usize>,
}

/// An answer, and how it ends.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: &'static str,
    pub headers: String,
    pub body: Vec<u8>,
    /// The header `Content-Length`, if it is not the body's.
    pub length: Option<usize>,
    /// Whether nothing more comes, and the connection stays.
    pub stalls: bool,
    /// How long each of ten pieces takes.
    pub pause: Option<Duration>,
    /// How long each byte of the answer takes, its head's from the given line on.
    pub drips: Option<(usize, Duration)>,
}

impl Answer {
    pub fn new(status: &'static str, headers: impl Into<String>, body: impl Into<Vec<u8>>) -> Self {
        Answer {
            status,
            headers: headers.into(),
            body: body.into(),
            length: None,
            stalls: false,
            pause: None,
            drips: None,
        }
    }

    /// The first bytes of it alone.
    pub fn cut(mut self, length: usize) -> Self {
        self.length = Some(self.body.len());
        self.body.truncate(length);
        self
    }

    /// The whole of a file.
    pub fn whole(bytes: &[u8], etag: &str, commit: &str) -> Self {
        Answer::new("200 OK", format!("etag: \"{etag}\"\r\nx-repo-commit: {commit}\r\n"), bytes)
    }

    /// A file from the byte on that was asked for.
    pub fn part(bytes: &[u8], etag: &str, commit: &str, request: &Request) -> Self {
        let whole = Answer::whole(bytes, etag, commit);
        let Some(from) = request.from else { return whole };
        if from >= bytes.len() {
            return Answer::new("416 Range Not Satisfiable", "", "");
        }
        let range = format!("content-range: bytes {from}-{}/{}\r\n", bytes.len() - 1, bytes.len());
        Answer::new("206 Partial Content", whole.headers + &range, &bytes[from..])
    }
}

pub struct Server {
    pub endpoint: String,
    asked: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// A server that answers so.
    pub fn new(answer: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
        let asked: Arc<Mutex<Vec<Request>>> = Arc::default();
        let (said, answer) = (Arc::clone(&asked), Arc::new(answer));
        // The threads end with the process.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, said, answer) =
                    (stream.expect("a connection"), Arc::clone(&said), Arc::clone(&answer));
                std::thread::spawn(move || serve(stream, &said, &*answer));
            }
        });
        Server { endpoint, asked }
    }

    /// A hub with one repository, `some/net`.
    pub fn of(files: &[(&str, Vec<u8>)]) -> Self {
        let files: BTreeMap<String, Vec<u8>> =
            files.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.clone())).collect();
        Server::new(move |request| {
            if request.address == "/api/models/some/net/revision/main" {
                let names: Vec<String> =
                    files.keys().map(|name| serde_json::json!({ "rfilename": name }).to_string()).collect();
                let list = format!("{{\"sha\": {COMMIT:?}, \"siblings\": [{}]}}", names.join(", "));
                return Answer::new("200 OK", "", list);
            }
            let name = request.address.strip_prefix("/some/net/resolve/").and_then(|path| {
                let (revision, name) = path.split_once('/')?;
                ["main", COMMIT].contains(&revision).then_some(name)
            });
            match name.and_then(|name| files.get_key_value(name)) {
                Some((name, bytes)) => Answer::part(bytes, &name.replace(['/', '%'], "-"), COMMIT, request),
                None => {
                    Answer::new("404 Not Found", "x-error-message: Entry not found\r\n", "Entry not found")
                }
            }
        })
    }

    /// What was asked for since the last call.
    pub fn requests(&self) -> Vec<Request> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }

    /// The methods and addresses of it.
    pub fn asked(&self) -> Vec<String> {
        self.requests().iter().map(|request| format!("{} {}", request.method, request.address)).collect()
    }
}

fn serve(mut stream: TcpStream, asked: &Mutex<Vec<Request>>, answer: &dyn Fn(&Request) -> Answer) {
    let mut lines = BufReader::new(stream.try_clone().expect("a connection")).lines().map_while(Result::ok);
    let Some(request) = lines.next() else { return };
    let mut words = request.split(' ').map(str::to_owned);
    let (method, address) = (words.next().expect("a method"), words.next().expect("an address"));
    let headers: Vec<String> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
    let header = |name: &str| {
        headers.iter().find_map(|line| {
            let (own, value) = line.split_once(": ")?;
            own.eq_ignore_ascii_case(name).then(|| value.to_owned())
        })
    };
    let from = header("range").map(|range| {
        let from = range.strip_prefix("bytes=").and_then(|range| range.strip_suffix('-'));
        from.and_then(|from| from.parse().ok()).expect("the bytes from one on")
    });
    let request = Request { method, address, token: header("authorization"), from };
    asked.lock().unwrap().push(request.clone());
    let Answer { status, headers, body, length, stalls, pause, drips } = answer(&request);
    let length = length.unwrap_or(body.len());
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n");
    let body = if request.method == "HEAD" { &[][..] } else { &body };
    if let Some((line, pause)) = drips {
        let whole = [head.as_bytes(), body].concat();
        let at_once: usize = head.split_inclusive("\r\n").take(line).map(str::len).sum();
        let mut sent = stream.write_all(&whole[..at_once]);
        for byte in &whole[at_once..] {
            std::thread::sleep(pause);
            sent = sent.and_then(|()| stream.write_all(&[*byte]));
            if sent.is_err() {
                return;
            }
        }
        return;
    }
    let mut sent = stream.write_all(head.as_bytes());
    for piece in body.chunks((body.len() / 10).max(1)) {
        std::thread::sleep(pause.unwrap_or_default());
        sent = sent.and_then(|()| stream.write_all(piece));
    }
    // Who asked may have gone.
    drop(sent);
    if stalls && request.method == "GET" {
        std::thread::sleep(Duration::from_secs(600));
    }
}
