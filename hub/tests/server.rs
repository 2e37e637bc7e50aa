//! Models of a hub on this machine.

use diptych::{Backend, Context, HostTensor, LoadOptions, ModelFile, SessionOptions};
use diptych_hub::{Error, Hub};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// What was asked for: the address, and the token.
type Asked = Mutex<Vec<(String, Option<String>)>>;

/// A server that speaks the hub's addresses, for one repository.
struct Server {
    endpoint: String,
    asked: Arc<Asked>,
}

impl Server {
    fn start(files: &[(&str, Vec<u8>)]) -> Self {
        let files: BTreeMap<String, Vec<u8>> =
            files.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.clone())).collect();
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
        let asked: Arc<Asked> = Arc::default();
        let said = Arc::clone(&asked);
        // It ends with the process.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                answer(stream.expect("a connection"), &files, &said);
            }
        });
        Server { endpoint, asked }
    }

    /// What was asked for since the last call.
    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().drain(..).map(|(address, _)| address).collect()
    }
}

fn answer(stream: TcpStream, files: &BTreeMap<String, Vec<u8>>, asked: &Asked) {
    let mut lines = BufReader::new(stream.try_clone().expect("a connection")).lines().map_while(Result::ok);
    let Some(request) = lines.next() else { return };
    let address = request.split(' ').nth(1).expect("an address").to_owned();
    let headers: Vec<String> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
    let header = |name: &str| {
        headers.iter().find_map(|line| {
            let (own, value) = line.split_once(": ")?;
            own.eq_ignore_ascii_case(name).then(|| value.to_owned())
        })
    };
    asked.lock().unwrap().push((address.clone(), header("authorization")));
    let mut stream = stream;
    let mut send = |status: &str, more: &str, body: &[u8]| {
        let head =
            format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n{more}\r\n", body.len());
        stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body)).expect("an answer");
    };
    if address == "/api/models/some/net/revision/main" {
        let names: Vec<String> = files.keys().map(|name| format!("{{\"rfilename\": {name:?}}}")).collect();
        let list = format!("{{\"sha\": {COMMIT:?}, \"siblings\": [{}]}}", names.join(", "));
        return send("200 OK", "", list.as_bytes());
    }
    let file =
        address.strip_prefix("/some/net/resolve/main/").and_then(|name| Some((name, files.get(name)?)));
    let Some((name, bytes)) = file else {
        return send("404 Not Found", "", b"Entry not found");
    };
    let range = header("range").and_then(|range| {
        let (from, to) = range.strip_prefix("bytes=")?.split_once('-')?;
        let from: usize = from.parse().ok()?;
        Some((from, to.parse().map_or(bytes.len(), |to: usize| to + 1)))
    });
    let (from, to) = range.unwrap_or((0, bytes.len()));
    let tag = name.replace('/', "-");
    let more = format!(
        "etag: \"{tag}\"\r\nx-repo-commit: {COMMIT}\r\ncontent-range: bytes {from}-{}/{}\r\n",
        to - 1,
        bytes.len()
    );
    send("206 Partial Content", &more, &bytes[from..to]);
}

fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2, bytes.len() as u8], bytes].concat()
}

/// y = x + w of two floats, whose w is in a file of this name.
fn adding(weights: &str) -> Vec<u8> {
    let extent = field(1, &[8, 2]);
    let kind = field(1, &[vec![8, 1], field(2, &extent)].concat());
    let port = |name: &str| [field(1, name.as_bytes()), field(2, &kind)].concat();
    let entry =
        |key: &str, value: &str| field(13, &[field(1, key.as_bytes()), field(2, value.as_bytes())].concat());
    let tensor = [vec![8, 2, 16, 1], field(8, b"w"), entry("location", weights), vec![14 << 3, 1]].concat();
    let node = [field(1, b"x"), field(1, b"w"), field(2, b"y"), field(4, b"Add")].concat();
    let graph =
        [field(1, &node), field(2, b"g"), field(5, &tensor), field(11, &port("x")), field(12, &port("y"))];
    [vec![8, 8], field(8, &[16, 17]), field(7, &graph.concat())].concat()
}

fn weights() -> Vec<u8> {
    [10.0f32, 20.0].iter().flat_map(|value| value.to_le_bytes()).collect()
}

#[test]
fn a_model_is_fetched_once_with_its_weights() {
    let server = Server::start(&[
        ("README.md", b"a net".to_vec()),
        ("onnx/model.onnx", adding("model.onnx_data")),
        ("onnx/model.onnx_data", weights()),
    ]);
    let cache = tempfile::tempdir().expect("a folder");
    let hub = Hub::new(&server.endpoint, cache.path()).token("hf_secret");
    let path = hub.fetch("some/net:onnx/model.onnx").expect("a model");
    assert_eq!(path, cache.path().join(format!("models--some--net/snapshots/{COMMIT}/onnx/model.onnx")));
    assert!(
        server.asked.lock().unwrap().iter().all(|(_, token)| token.as_deref() == Some("Bearer hf_secret"))
    );
    let resolved = |name: &str| format!("/some/net/resolve/main/onnx/{name}");
    let (model, data) = (resolved("model.onnx"), resolved("model.onnx_data"));
    // Each file's size, and its contents.
    assert_eq!(server.asked(), [model.clone(), model, data.clone(), data]);

    let file = ModelFile::load(&path, &LoadOptions::default()).expect("a file that is read");
    let context = Context::new(Backend::Cpu).expect("the CPU");
    let mut session = file.session(&context, SessionOptions::default()).expect("a session");
    let x = HostTensor::vector(vec![1.0, 2.0]).expect("a tensor");
    let found = session.run(&[("x", &x)]).expect("a run");
    assert_eq!(*found[0].to_f32(), [11.0, 22.0]);

    // Now it is there, and nobody is asked.
    assert_eq!(hub.fetch("some/net:onnx/model.onnx").expect("the same"), path);
    assert!(server.asked().is_empty());
    assert_eq!(hub.clone().offline(true).fetch("some/net").expect("the only one"), path);
    assert!(server.asked().is_empty());
    // What the hub lists decides which file is the only one.
    assert_eq!(hub.fetch("some/net").expect("the only one"), path);
    assert_eq!(server.asked(), ["/api/models/some/net/revision/main"]);
    // Without the hub, the cache does.
    let away = Hub::new("http://127.0.0.1:1", cache.path());
    assert_eq!(away.fetch("some/net").expect("the only one"), path);
}

#[test]
fn one_of_several_models_must_be_named() {
    let server = Server::start(&[("b.tflite", vec![1]), ("a.onnx", adding("w")), ("config.json", vec![2])]);
    let cache = tempfile::tempdir().expect("a folder");
    let hub = Hub::new(&server.endpoint, cache.path());
    let error = hub.fetch("some/net").expect_err("two models");
    assert_eq!(
        error.to_string(),
        "some/net: found a.onnx, b.tflite, wanted one .tflite or .onnx file: name it, as in hf:some/net:FILE"
    );
    assert!(cache.path().read_dir().expect("a folder").next().is_none(), "nothing was fetched");
    assert!(hub.fetch("some/net:b.tflite").is_ok());
}

#[test]
fn what_is_not_there_is_an_error() {
    let server = Server::start(&[("model.onnx", adding("../secret"))]);
    let cache = tempfile::tempdir().expect("a folder");
    let hub = Hub::new(&server.endpoint, cache.path());
    let error = hub.fetch("some/net:other.onnx").expect_err("no such file").to_string();
    assert!(error.starts_with(&format!("other.onnx of some/net of {}: ", server.endpoint)), "{error}");
    assert!(error.contains("404"), "{error}");
    let offline = hub.clone().offline(true).fetch("some/net:model.onnx").expect_err("not in the cache");
    assert!(matches!(offline, Error::Offline { .. }), "{offline}");
    assert!(hub.clone().offline(true).fetch("some/net").is_err());
    server.asked();
    assert!(hub.fetch("some/net:../../x.onnx").is_err());
    assert!(server.asked().is_empty());

    // A model that names weights outside of its folder: those are not asked for, nor read.
    let path = hub.fetch("some/net:model.onnx").expect("the model");
    assert!(server.asked().iter().all(|address| address.ends_with("/model.onnx")));
    let refused = ModelFile::load(path, &LoadOptions::default())
        .and_then(|file| file.session(&Context::new(Backend::Cpu)?, SessionOptions::default()).map(drop))
        .expect_err("a path that leads out");
    assert!(refused.to_string().contains("secret"), "{refused}");
}

#[test]
fn the_server_gives_parts() {
    // The tests above rely on it.
    let server = Server::start(&[("b.tflite", (0..100).collect())]);
    let mut stream = TcpStream::connect(server.endpoint.trim_start_matches("http://")).expect("the server");
    stream
        .write_all(b"GET /some/net/resolve/main/b.tflite HTTP/1.1\r\nRange: bytes=97-\r\n\r\n")
        .expect("a request");
    let mut all = Vec::new();
    stream.read_to_end(&mut all).expect("an answer");
    assert!(all.ends_with(b"content-range: bytes 97-99/100\r\n\r\n\x61\x62\x63"), "{}", all.escape_ascii());
}
