//! The PoseNet example's own parts, and these on real networks' outputs.
//!
//! The modules' unit tests run here too: Cargo builds the example but does not test it. The real
//! outputs, computed in float64, lie under `$DIPTYCH_SHARED/posenet/golden` (default `../shared`);
//! where they are absent the tests say so and pass.

use crate::{model, network, npy, options, tuning};
use clap::Parser;
use diptych_decode::picture::Picture;
use diptych_decode::posenet::{Heads, Settings, multi, single};
use diptych_decode::{FeatureMap, Pose, skeleton};
use std::path::{Path, PathBuf};

/// The parts as `keypoints.json` calls them, in the order of the heatmap's channels.
const SHORT: [&str; skeleton::PARTS] = [
    "nose", "lEye", "rEye", "lEar", "rEar", "lSho", "rSho", "lElb", "rElb", "lWri", "rWri", "lHip", "rHip",
    "lKne", "rKne", "lAnk", "rAnk",
];

const LARGE: &str = "posenet_mobilenet_v1_100_257x257_f32";
const FINE: &str = "posenet_mobilenet_v1_075_257x257_os16_f32";

/// The folder of shared files, if it is there.
fn shared() -> Option<PathBuf> {
    let root = std::env::var_os("DIPTYCH_SHARED").map_or_else(|| PathBuf::from("../shared"), PathBuf::from);
    let folder = root.join("posenet");
    if folder.is_dir() {
        return Some(folder);
    }
    crate::absent::say(&folder);
    None
}

/// An array of four axes, as f32.
fn read(path: &Path) -> ([usize; 4], Vec<f32>) {
    let (shape, values) = npy::read(path);
    (shape.try_into().expect("four axes"), values.into_iter().map(|value| value as f32).collect())
}

fn heads_of(folder: &Path) -> Heads<'static> {
    let map = |file: &str| {
        let (shape, values) = read(&folder.join(format!("{file}.f64.npy")));
        FeatureMap::new(file, shape, values).expect("finite values")
    };
    let (input, _) = read(&folder.join("input.npy"));
    let displacements = Some([map("fwd"), map("bwd")]);
    Heads::new([input[1], input[2]], map("heatmaps"), map("offsets"), displacements).expect("a PoseNet")
}

/// (x, y, score) of each part.
fn expected(folder: &Path) -> [[f64; 3]; skeleton::PARTS] {
    let text = std::fs::read_to_string(folder.join("keypoints.json")).expect("keypoints");
    let object: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(object.as_object().map(serde_json::Map::len), Some(SHORT.len()));
    SHORT.map(|name| [0, 1, 2].map(|axis| object[name][axis].as_f64().expect("a number")))
}

#[test]
fn single_pose_agrees_with_the_goldens() {
    let Some(shared) = shared() else { return };
    let mut failures = Vec::new();
    let mut cases = 0;
    for model in std::fs::read_dir(shared.join("golden")).expect("goldens") {
        for input in std::fs::read_dir(model.expect("a folder").path()).expect("a model's goldens") {
            let folder = input.expect("a folder").path();
            let (pose, expected) = (single(&heads_of(&folder)), expected(&folder));
            cases += 1;
            for ((found, wanted), name) in pose.keypoints.iter().zip(expected).zip(SHORT) {
                let differences = [
                    f64::from(found.x) - wanted[0],
                    f64::from(found.y) - wanted[1],
                    100.0 * (f64::from(found.score) - wanted[2]), // scores within 1e-5
                ];
                if differences.iter().any(|difference| difference.abs() > 1e-3) {
                    failures.push(format!("{} {name}: {found:?} for {wanted:?}", folder.display()));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(cases >= 6, "{cases} cases");
}

/// The largest distance between the sure parts of two poses, in pixels, and their number.
fn apart(pose: &Pose, other: &Pose) -> (f32, usize) {
    let both = pose.keypoints.iter().zip(&other.keypoints);
    let sure = both.filter(|(a, b)| a.score > 0.5 && b.score > 0.5);
    sure.fold((0.0, 0), |(most, count), (a, b)| (f32::max(most, (a.x - b.x).hypot(a.y - b.y)), count + 1))
}

#[test]
fn of_one_person_both_decoders_say_the_same() {
    let Some(shared) = shared() else { return };
    for model in [LARGE, FINE] {
        let heads = heads_of(&shared.join("golden").join(model).join("pakutaso_person"));
        let poses = multi(&heads, &Settings::default()).expect("displacements");
        assert_eq!(poses.len(), 1, "{model}: {poses:?}");
        // The tree may enter a part's neighbourhood at another cell than the highest.
        let (most, count) = apart(&poses[0], &single(&heads));
        assert!(most < 8.0 && count >= 15, "{model}: {count} sure parts, up to {most} pixels apart");
    }
}

#[test]
fn the_couple_are_two_people() {
    let Some(shared) = shared() else { return };
    for model in [LARGE, FINE] {
        let heads = heads_of(&shared.join("golden").join(model).join("test_couple"));
        let poses = multi(&heads, &Settings::default()).expect("displacements");
        assert_eq!(poses.len(), 2, "{model}: {poses:?}");
        // He walks left of her, with x = 125 between them. At this size the network itself mixes
        // up ears and feet of people so close, so the test looks at what it is clear about.
        let (his, hers) = if poses[0].keypoints[0].x < poses[1].keypoints[0].x { (0, 1) } else { (1, 0) };
        for part in ["nose", "lSho", "rSho", "lHip", "rHip"] {
            let index = SHORT.iter().position(|&name| name == part).expect("a part");
            let (his, hers) = (poses[his].keypoints[index], poses[hers].keypoints[index]);
            assert!(his.x < 125.0 && his.score > 0.5, "{model}: his {part} {his:?}");
            assert!(hers.x > 125.0 && hers.score > 0.5, "{model}: her {part} {hers:?}");
        }
    }
}

#[test]
fn the_resize_agrees_with_the_goldens() {
    let Some(shared) = shared() else { return };
    for (name, file) in [("pakutaso_person", "pakutaso_person.jpg"), ("test_couple", "test_couple.jpg")] {
        let picture = Picture::open(&shared.join("images").join(file)).expect("a photograph");
        let (shape, wanted) = read(&shared.join("golden").join(LARGE).join(name).join("input.npy"));
        let found = picture.input([shape[1], shape[2]]).expect("an input");
        assert_eq!(found.len(), wanted.len());
        let steps = found.iter().zip(&wanted).map(|(a, b)| f64::from((a - b).abs()) * 127.5);
        let (sum, most) = steps.fold((0.0, 0.0), |(sum, most), step| (sum + step, f64::max(most, step)));
        let mean = sum / found.len() as f64;
        println!("{name}: difference of the input, in steps of a byte: largest {most:.2}, mean {mean:.4}");
        // JPEG decoders round differently; any other resize is off by more than 20 steps.
        assert!(most < 4.0 && mean < 0.15, "{name}: largest {most}, mean {mean}");
    }
}

fn parse(line: &str) -> Result<options::Options, clap::Error> {
    options::Options::try_parse_from(format!("posenet --model m --image i {line}").split_whitespace())
}

#[test]
fn the_record_is_asked_for_with_or_without_a_folder() {
    let none = parse("").expect("valid");
    assert_eq!((none.db, none.tune), (None, None));
    assert_eq!(parse("--db --profile").expect("valid").db, Some(None));
    let both = parse("--db dir --tune 2.5").expect("valid");
    assert_eq!(both.db, Some(Some("dir".into())));
    assert_eq!(both.tune, Some(std::time::Duration::from_millis(2500)));
    for wrong in ["--tune", "--tune soon", "--tune=-1", "--tune NaN"] {
        let error = parse(wrong).expect_err(wrong).to_string();
        assert!(error.contains("SECONDS"), "{wrong}: {error}");
    }
}

#[test]
fn a_tuned_network_is_remembered() {
    use diptych::{Backend, Context, Extras, Graph, HostTensor, Session, SessionOptions, Shape, Tuning};
    let mut graph = Graph::new();
    let x = graph.input("x", Shape::nhwc(1, 5, 5, 8)).expect("an input");
    let weights = HostTensor::new(Shape::nhwc(8, 1, 1, 8), vec![0.5; 64]).expect("weights");
    let y = graph.pointwise("mix", x, weights, Extras::default(), Default::default()).expect("a node");
    graph.output(y).expect("an output");
    let root = tempfile::tempdir().expect("a folder");
    let report = |context: &Context, line: &str| {
        // A folder for each backend: one API's verdict is a hint to the other.
        let folder = root.path().join(context.info().backend.to_string());
        let options = parse(&format!("--db {} {line}", folder.display())).expect("valid");
        let tuning = tuning::tuning(&options, context, &graph)?;
        let session = Session::new(context, &graph, SessionOptions { tuning, ..Default::default() })
            .expect("a session");
        anyhow::Ok(tuning::describe(&session))
    };
    for backend in [Backend::Wgpu, Backend::OpenCl] {
        let context = match Context::new(backend) {
            Ok(context) => context,
            Err(error) if std::env::var_os("DIPTYCH_REQUIRE_DEVICES").is_some() => {
                panic!("{backend}: {error}")
            }
            Err(error) => {
                println!("skipping {backend}: {error}");
                continue;
            }
        };
        assert_eq!(report(&context, "").expect("read"), "0 of 1 nodes run as the record says", "{backend}");
        assert_eq!(report(&context, "--tune 1").expect("tuned"), "1 of 1 nodes run as the record says");
        assert_eq!(report(&context, "").expect("read"), "1 of 1 nodes run as the record says");
    }
    let cpu = Context::new(Backend::Cpu).expect("a CPU");
    let error = report(&cpu, "--tune 1").expect_err("nothing to tune").to_string();
    assert!(error.contains("the CPU backend has no kernels to choose from"), "{error}");
    let options = parse(&format!("--db {}", root.path().display())).expect("valid");
    assert!(matches!(tuning::tuning(&options, &cpu, &graph), Ok(Tuning::Default)));
}

#[test]
fn without_arguments_the_bundled_people_are_found() {
    let options = options::Options::try_parse_from(["posenet", "--backend", "cpu"]).expect("no arguments");
    let (_, graph) = network::graph(&options).expect("the bundled network");
    let posenet = model::Model::of(&graph).expect("a PoseNet");
    let mut network = network::Network::new(&options, options.backend, &posenet, &graph).expect("a session");
    let bytes = include_bytes!("../../examples/posenet/data/people.png");
    let people = Picture::read("people.png", std::io::Cursor::new(bytes)).expect("a picture");
    let (heads, _) = network.run(&posenet.input(&people).expect("an input")).expect("a run");
    let poses = model::poses(&heads, &posenet, people.pixels.dimensions(), options.several()).expect("poses");
    let sure: Vec<_> = poses.iter().filter(|pose| pose.score > 0.5).collect();
    assert_eq!(sure.len(), 3, "{poses:?}");
    // From left to right, the noses as the picture shows them.
    let mut noses: Vec<f32> = sure.iter().map(|pose| pose.keypoints[0].x).collect();
    noses.sort_by(f32::total_cmp);
    assert!(
        noses.iter().zip([140.0, 322.0, 480.0]).all(|(found, wanted)| (found - wanted).abs() < 30.0),
        "{noses:?}"
    );
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let parse = |line: &str| options::Options::try_parse_from(format!("posenet {line}").split_whitespace());
    assert_eq!(parse("--compare wgpu,cpu").expect("two backends").compare.len(), 2);
    assert_eq!(parse("--video frames").expect("a film").output(), Path::new("pose.gif"));
    for wrong in [
        "--video a --image b",
        "--compare wgpu,cpu --backend cpu",
        "--fps 5",
        "--video a --fps 0",
        "--compare cuda",
    ] {
        assert!(parse(wrong).is_err(), "{wrong}");
    }
}
