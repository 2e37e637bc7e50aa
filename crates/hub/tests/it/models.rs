//! Models with their weights, and what is in the cache.

use crate::server::{Answer, COMMIT, Server};
use diptych::{Backend, Context, HostTensor, LoadOptions, ModelFile, SessionOptions};
use diptych_hub::{Error, Hub};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

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

/// What a model makes of 1 and 2.
fn sum(path: &Path) -> Vec<f32> {
    let file = ModelFile::load(path, &LoadOptions::default()).expect("a file that is read");
    let context = Context::new(Backend::Cpu).expect("the CPU");
    let mut session = file.session(&context, SessionOptions::default()).expect("a session");
    let x = HostTensor::vector(vec![1.0, 2.0]).expect("a tensor");
    session.run(&[("x", &x)]).expect("a run")[0].to_f32().to_vec()
}

#[test]
fn a_model_is_fetched_once_with_its_weights() {
    let server = Server::of(&[
        ("README.md", b"a net".to_vec()),
        ("onnx/model.onnx", adding("model.onnx_data")),
        ("onnx/model.onnx_data", weights()),
    ]);
    let cache = tempfile::tempdir().expect("a folder");
    let hub = Hub::new(&server.endpoint, cache.path()).token("hf_secret");
    let path = hub.fetch("some/net:onnx/model.onnx").expect("a model");
    assert_eq!(path, cache.path().join(format!("models--some--net/snapshots/{COMMIT}/onnx/model.onnx")));
    let requests = server.requests();
    assert!(requests.iter().all(|request| request.token.as_deref() == Some("Bearer hf_secret")));
    // Each file's size, and its contents. Weights are of the commit that the model is of.
    let addresses: Vec<_> = requests.iter().map(|own| format!("{} {}", own.method, own.address)).collect();
    let resolve = "/some/net/resolve";
    let wanted = [
        format!("HEAD {resolve}/main/onnx/model.onnx"),
        format!("GET {resolve}/{COMMIT}/onnx/model.onnx"),
        format!("HEAD {resolve}/{COMMIT}/onnx/model.onnx_data"),
        format!("GET {resolve}/{COMMIT}/onnx/model.onnx_data"),
    ];
    assert_eq!(addresses, wanted);
    assert_eq!(sum(&path), [11.0, 22.0]);

    // Now it is there, and nobody is asked.
    assert_eq!(hub.fetch("some/net:onnx/model.onnx").expect("the same"), path);
    assert!(server.asked().is_empty());
    assert_eq!(hub.clone().offline(true).fetch("some/net").expect("the only one"), path);
    assert!(server.asked().is_empty());
    // What the hub lists decides which file is the only one.
    assert_eq!(hub.fetch("some/net").expect("the only one"), path);
    assert_eq!(server.asked(), ["GET /api/models/some/net/revision/main"]);
    // Without the hub, the cache does.
    let away = Hub::new("http://127.0.0.1:1", cache.path());
    assert_eq!(away.fetch("some/net").expect("the only one"), path);
}

#[test]
fn one_of_several_models_must_be_named() {
    let server = Server::of(&[("b.tflite", vec![1]), ("a.onnx", adding("w")), ("config.json", vec![2])]);
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
    let server = Server::of(&[("config.json", Vec::new())]);
    let cache = tempfile::tempdir().expect("a folder");
    let hub = Hub::new(&server.endpoint, cache.path());
    let error = hub.fetch("some/net:other.onnx").expect_err("no such file").to_string();
    assert!(error.starts_with(&format!("other.onnx of some/net of {}: ", server.endpoint)), "{error}");
    assert!(error.ends_with("status 404 Not Found: Entry not found"), "{error}");
    let offline = hub.clone().offline(true).fetch("some/net:model.onnx").expect_err("not in the cache");
    assert!(matches!(offline, Error::Offline { .. }), "{offline}");
    assert!(
        offline.to_string().ends_with("the hub is not asked (HF_HUB_OFFLINE or Hub::offline)"),
        "{offline}"
    );
    assert!(hub.clone().offline(true).fetch("some/net").is_err());
    server.asked();
    assert!(hub.fetch("some/net:../../x.onnx").is_err());
    assert!(server.asked().is_empty());
}

#[test]
fn weights_are_found_by_each_name_that_the_loader_takes() {
    for (name, file, address) in [
        ("./model.onnx_data", "model.onnx_data", "model.onnx_data"),
        ("w/./1 #%.bin", "w/1 #%.bin", "w/1%20%23%25.bin"),
    ] {
        let server =
            Server::of(&[("onnx/model.onnx", adding(name)), (&format!("onnx/{address}"), weights())]);
        let cache = tempfile::tempdir().expect("a folder");
        let path = Hub::new(&server.endpoint, cache.path()).fetch("some/net:onnx/model.onnx").expect(name);
        assert!(path.with_file_name(file).is_file());
        assert_eq!(sum(&path), [11.0, 22.0]);
    }
}

#[test]
fn weights_outside_of_the_folder_are_refused() {
    for name in ["../secret", "/etc/secret", "a/../../secret", "\u{1b}[2Jsecret"] {
        let server = Server::of(&[("onnx/model.onnx", adding(name)), ("secret", weights())]);
        let cache = tempfile::tempdir().expect("a folder");
        let error =
            Hub::new(&server.endpoint, cache.path()).fetch("some/net:onnx/model.onnx").expect_err(name);
        let wanted = format!(
            "onnx/model.onnx of some/net: found weights in {name:?}, wanted a file in the model's folder"
        );
        assert_eq!(error.to_string(), wanted);
        assert!(server.asked().iter().all(|address| address.ends_with("/onnx/model.onnx")));
    }
}

#[test]
fn weights_are_of_the_commit_of_their_model() {
    let later = COMMIT.replace('0', "f");
    // The weights do not come at first. Then `main` is another commit, with other weights.
    let (turn, new) = (AtomicUsize::new(0), later.clone());
    let server = Server::new(move |request| {
        let (revision, name) =
            request.address["/some/net/resolve/".len()..].split_once('/').expect("a revision");
        let is_later = revision == new || revision == "main" && turn.load(Ordering::Relaxed) > 0;
        let commit = if is_later { &new } else { COMMIT };
        let bytes = match (name, is_later) {
            ("model.onnx", _) => adding("w"),
            (_, true) => vec![0; 8],
            _ if turn.fetch_add(1, Ordering::Relaxed) == 0 => return Answer::new("404 Not Found", "", ""),
            _ => weights(),
        };
        Answer::part(&bytes, &format!("{name}-{is_later}"), commit, request)
    });
    let cache = tempfile::tempdir().expect("a folder");
    let hub = Hub::new(&server.endpoint, cache.path());
    hub.fetch("some/net:model.onnx").expect_err("no weights");
    let path = hub.fetch("some/net:model.onnx").expect("a model");
    assert!(path.to_str().unwrap().contains(COMMIT), "{}", path.display());
    assert_eq!(sum(&path), [11.0, 22.0]);
    // The later commit is another model.
    let path = hub.fetch(&format!("some/net@{later}:model.onnx")).expect("a model");
    assert_eq!(sum(&path), [1.0, 2.0]);
}

#[test]
fn what_other_programs_put_into_the_cache_is_found() {
    let cache = tempfile::tempdir().expect("a folder");
    let repository = cache.path().join("models--some--net");
    let snapshot = repository.join("snapshots").join(COMMIT);
    std::fs::create_dir_all(snapshot.join("a.tflite")).expect("a folder");
    std::fs::write(snapshot.join("b.tflite"), [1]).expect("a file");
    let hub = Hub::new("http://127.0.0.1:1", cache.path()).offline(true);
    // By a commit, for which `huggingface_hub` writes no ref.
    let path = hub.fetch(&format!("some/net@{COMMIT}:b.tflite")).expect("a file");
    assert_eq!(path, snapshot.join("b.tflite"));
    assert_eq!(hub.fetch(&format!("some/net@{COMMIT}")).expect("the only one"), path);
    // By a branch, whose ref ends with a line.
    assert!(matches!(hub.fetch("some/net:b.tflite"), Err(Error::Offline { .. })));
    std::fs::create_dir_all(repository.join("refs/pr")).expect("a folder");
    for branch in ["main", "pr/1"] {
        std::fs::write(repository.join("refs").join(branch), format!("{COMMIT}\n")).expect("a file");
        assert_eq!(hub.fetch(&format!("some/net@{branch}:b.tflite")).expect("a file"), path);
        assert_eq!(hub.fetch(&format!("some/net@{branch}")).expect("the only one"), path);
    }
    // A folder is no file.
    assert!(matches!(hub.fetch("some/net:a.tflite"), Err(Error::Offline { .. })));
    // A ref does not lead out.
    std::fs::write(repository.join("refs/main"), "../..").expect("a file");
    assert!(matches!(hub.fetch("some/net:refs/main"), Err(Error::Offline { .. })));
}
