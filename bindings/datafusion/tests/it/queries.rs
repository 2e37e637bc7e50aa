//! Queries in this process.

use crate::pictures;
use crate::results::{Found, found, local, models, options, query, same};
use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::datatypes::{Float32Type, Int64Type};
use datafusion::error::DataFusionError;
use datafusion::prelude::SessionContext;
use diptych::{Backend, Context, Session, SessionOptions, tflite};
use diptych_datafusion::{Models, Network, Options, functions};

const FIGURES: &[u8] = include_bytes!("../../../../examples/posenet/data/posenet_figures.tflite");

#[tokio::test(flavor = "multi_thread")]
async fn a_picture_gives_its_people_and_a_bad_one_its_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pictures.parquet");
    pictures::write(&file, 40, Some(5), 8).unwrap();
    let models = models(options(Backend::Cpu)).await;
    let context = local(&models, &file).await;
    let rows = found(&query(&context, "SELECT id, pose(image) FROM pictures").await.unwrap());
    assert_eq!(rows.len(), 40);
    for (id, found) in &rows {
        match (id % 5, id / 5 % 4, found) {
            (0..=3, _, Found::People(people)) => {
                assert!(!people.is_empty(), "nobody in picture {id}");
                assert!(people.iter().all(|person| person.parts.len() == 17), "picture {id}");
                assert!(people[0].score > 0.3, "picture {id}: {}", people[0].score);
                assert!(people.windows(2).all(|pair| pair[0].score >= pair[1].score), "picture {id}");
            }
            (4, 0, Found::Null) => {}
            (4, _, Found::Unreadable(error)) => assert!(error.contains("picture"), "{id}: {error}"),
            (_, _, other) => panic!("row {id}: {other:?}"),
        }
    }
    // The same from other types of column, and another order of rows.
    let sql = "SELECT id, pose(arrow_cast(image, 'LargeBinary')) FROM pictures ORDER BY id DESC";
    same(&rows, &found(&query(&context, sql).await.unwrap()));
    let sql = "SELECT id, pose(arrow_cast(image, 'Binary')) FROM pictures";
    same(&rows, &found(&query(&context, sql).await.unwrap()));
    let sql = "SELECT count(*) FROM pictures WHERE pose(image)['error'] IS NOT NULL";
    let count = query(&context, sql).await.unwrap();
    assert_eq!(count[0].column(0).as_primitive::<Int64Type>().value(0), 6);
}

/// What a session gives for one picture, the way the PoseNet example prepares it.
#[tokio::test(flavor = "multi_thread")]
async fn the_outputs_are_those_of_a_session() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pictures.parquet");
    pictures::write(&file, 3, None, 8).unwrap();
    let models = models(options(Backend::Cpu)).await;
    let context = local(&models, &file).await;
    let sql = "SELECT id, infer('other', image) FROM pictures ORDER BY id";
    let batches = query(&context, sql).await.unwrap();

    let graph = tflite::from_bytes(FIGURES).unwrap();
    let names: Vec<String> =
        graph.outputs().iter().map(|&output| graph.name(output).unwrap().to_owned()).collect();
    let device = Context::new(Backend::Cpu).unwrap();
    let mut session = Session::new(&device, &graph, SessionOptions::default()).unwrap();
    let people = pictures::people().unwrap();
    let mut row = 0;
    for batch in &batches {
        let results = batch.column(1).as_struct();
        for at in 0..batch.num_rows() {
            let encoded = pictures::picture(&people, row).unwrap();
            let pixels = image::load_from_memory(&encoded).unwrap().into_rgb8();
            let input = stretched(&pixels, &session);
            let wanted = session.run(&[(session.inputs()[0].name.clone().as_str(), &input)]).unwrap();
            let outputs = results.column(0).as_list::<i32>().value(at);
            let outputs = outputs.as_struct();
            assert_eq!(outputs.len(), wanted.len());
            for (index, wanted) in wanted.iter().enumerate() {
                assert_eq!(outputs.column(0).as_string::<i32>().value(index), names[index]);
                let shape = outputs.column(1).as_list::<i32>().value(index);
                let shape: Vec<usize> = shape
                    .as_primitive::<Int64Type>()
                    .values()
                    .iter()
                    .map(|&extent| extent as usize)
                    .collect();
                assert_eq!(shape, wanted.dims().extents());
                let values = outputs.column(2).as_list::<i32>().value(index);
                let values = values.as_primitive::<Float32Type>();
                let wanted = wanted.to_f32();
                let apart = values.values().iter().zip(&*wanted).map(|(a, b)| (a - b).abs());
                assert!(apart.fold(0.0, f32::max) < 1e-3, "picture {row}, output {index}");
            }
            row += 1;
        }
    }
    assert_eq!(row, 3);
}

fn stretched(pixels: &image::RgbImage, session: &Session) -> diptych::HostTensor {
    use fast_image_resize::{FilterType, ResizeAlg, ResizeOptions, Resizer};
    let shape = session.inputs()[0].shape;
    let mut resized = image::RgbImage::new(shape.w as u32, shape.h as u32);
    let way = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(FilterType::Bilinear));
    Resizer::new().resize(pixels, &mut resized, &way).unwrap();
    let values: Vec<f32> = resized.as_raw().iter().map(|&v| (f32::from(v) - 127.5) / 127.5).collect();
    diptych::HostTensor::new(shape, values).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn nulls_empty_tables_and_names_of_rows() {
    let models = models(options(Backend::Cpu)).await;
    let context = SessionContext::new();
    diptych_datafusion::register(&context, &models);
    let sql = "SELECT 1 AS id, pose(CAST(NULL AS BYTEA))";
    assert_eq!(found(&query(&context, sql).await.unwrap())[&1], Found::Null);
    let sql = "SELECT 1 AS id, pose(CAST('no picture' AS BYTEA))";
    assert!(matches!(found(&query(&context, sql).await.unwrap())[&1], Found::Unreadable(_)));
    let sql = "SELECT name, infer(name, CAST('no picture' AS BYTEA)) FROM (VALUES ('pose'), (NULL), ('other')) AS t(name)";
    let batches = query(&context, sql).await.unwrap();
    let nulls: usize = batches.iter().map(|batch| batch.column(1).null_count()).sum();
    assert_eq!(nulls, 1, "a null name gives null");
    let sql = "SELECT pose(image) FROM (VALUES (CAST('x' AS BYTEA))) AS t(image) WHERE image IS NULL";
    assert_eq!(query(&context, sql).await.unwrap().iter().map(|batch| batch.num_rows()).sum::<usize>(), 0);
}

/// Files of the machine are out of reach: a name is none of a file.
#[tokio::test(flavor = "multi_thread")]
async fn only_networks_that_were_given_are_called() {
    let models = models(options(Backend::Cpu)).await;
    let context = SessionContext::new();
    diptych_datafusion::register(&context, &models);
    for name in ["/etc/passwd", "../pose", "Pose", ""] {
        let error =
            query(&context, &format!("SELECT infer('{name}', CAST('x' AS BYTEA))")).await.unwrap_err();
        let text = error.to_string();
        assert!(text.contains(&format!("{name:?}")) && text.contains("\"other\", \"pose\""), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_is_said() {
    let open = |networks: Vec<Network>| {
        let options = Options { networks, ..options(Backend::Cpu) };
        Models::open(options).map(drop).map_err(|error| error.to_string())
    };
    let twice = open(vec![Network::figures("a"), Network::figures("a")]).unwrap_err();
    assert!(twice.contains("two networks named \"a\""), "{twice}");
    let missing = open(vec![Network::file("a", "no/such.tflite")]).unwrap_err();
    assert!(missing.contains("\"a\"") && missing.contains("no/such.tflite"), "{missing}");
    // Planned without networks, as a scheduler does, and not called.
    let context = SessionContext::new();
    for function in functions(None) {
        context.register_udf(function);
    }
    let error = query(&context, "SELECT pose(CAST('x' AS BYTEA))").await.unwrap_err();
    assert!(
        matches!(error.find_root(), DataFusionError::Execution(text) if text.contains("no networks")),
        "{error}"
    );
    let error = query(&context, "SELECT pose(1.5)").await.unwrap_err().to_string();
    assert!(error.contains("pose"), "{error}");
}
