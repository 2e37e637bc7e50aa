//! Descriptions, normalisations and labels.

use super::super::tables::slot;
use super::ends::reshaped;
use super::writer::{BufferSpec, FileSpec};
use crate::dims::Dims;
use crate::host::HostTensor;
use diptych::{LoadOptions, Model};
use diptych::{ModelFile, Pixels};
use flatbuffers::FlatBufferBuilder;

/// Metadata of one input with a normalisation and one output with a label file.
fn metadata() -> Vec<u8> {
    metadata_of(128.0)
}

/// Metadata of one input with a normalisation by this deviation, and one output with a label file.
fn metadata_of(deviation: f32) -> Vec<u8> {
    let mut fbb = FlatBufferBuilder::new();
    let (mean, deviation) = (fbb.create_vector(&[127.5f32]), fbb.create_vector(&[deviation]));
    let table = fbb.start_table();
    fbb.push_slot_always(slot(0), mean);
    fbb.push_slot_always(slot(1), deviation);
    let options = fbb.end_table(table);
    let table = fbb.start_table();
    fbb.push_slot_always(slot(0), 1u8);
    fbb.push_slot_always(slot(1), options);
    let step = fbb.end_table(table);
    let steps = fbb.create_vector(&[step]);
    let text = fbb.create_string("a picture");
    let table = fbb.start_table();
    fbb.push_slot_always(slot(1), text);
    fbb.push_slot_always(slot(4), steps);
    let input = fbb.end_table(table);
    let name = fbb.create_string("labels.txt");
    let table = fbb.start_table();
    fbb.push_slot_always(slot(0), name);
    fbb.push_slot_always(slot(2), 2i8);
    let file = fbb.end_table(table);
    let files = fbb.create_vector(&[file]);
    let table = fbb.start_table();
    fbb.push_slot_always(slot(6), files);
    let output = fbb.end_table(table);
    let (inputs, outputs) = (fbb.create_vector(&[input]), fbb.create_vector(&[output]));
    let table = fbb.start_table();
    fbb.push_slot_always(slot(2), inputs);
    fbb.push_slot_always(slot(3), outputs);
    let network = fbb.end_table(table);
    let networks = fbb.create_vector(&[network]);
    let (name, text) = (fbb.create_string("stem"), fbb.create_string("a first layer"));
    let table = fbb.start_table();
    fbb.push_slot_always(slot(0), name);
    fbb.push_slot_always(slot(1), text);
    fbb.push_slot_always(slot(3), networks);
    let root = fbb.end_table(table);
    fbb.finish(root, Some("M001"));
    fbb.finished_data().to_vec()
}

/// A zip archive of one stored file, whose offsets count from `before` bytes in front of it.
fn archive(name: &str, text: &str, method: u16, before: usize) -> Vec<u8> {
    let (name, text) = (name.as_bytes(), text.as_bytes());
    let sizes = |bytes: &mut Vec<u8>| {
        for size in [0, text.len() as u32, text.len() as u32] {
            bytes.extend(size.to_le_bytes());
        }
        bytes.extend((name.len() as u16).to_le_bytes());
        bytes.extend(0u16.to_le_bytes());
    };
    let mut bytes = b"PK\x03\x04".to_vec();
    for field in [20, 0, method, 0, 0u16] {
        bytes.extend(field.to_le_bytes());
    }
    sizes(&mut bytes);
    bytes.extend(name);
    bytes.extend(text);
    let directory = bytes.len();
    bytes.extend(b"PK\x01\x02");
    for field in [20, 20, 0, method, 0, 0u16] {
        bytes.extend(field.to_le_bytes());
    }
    sizes(&mut bytes);
    bytes.extend([0; 10]);
    bytes.extend((before as u32).to_le_bytes());
    bytes.extend(name);
    let size = bytes.len() - directory;
    bytes.extend(b"PK\x05\x06");
    for field in [0, 0, 1, 1u16] {
        bytes.extend(field.to_le_bytes());
    }
    bytes.extend((size as u32).to_le_bytes());
    bytes.extend(((before + directory) as u32).to_le_bytes());
    bytes.extend(0u16.to_le_bytes());
    bytes
}

fn stem_with(metadata: Vec<u8>) -> Vec<u8> {
    file_with(FileSpec::stem(), metadata)
}

fn file_with(mut file: FileSpec, metadata: Vec<u8>) -> Vec<u8> {
    file.buffers.push(BufferSpec { data: Some(metadata), outside: None });
    file.metadata = Some(("TFLITE_METADATA", file.buffers.len() as u32 - 1));
    file.bytes()
}

fn load(bytes: &[u8]) -> Model {
    Model::from_bytes(bytes, &LoadOptions::default()).expect("a valid file")
}

#[test]
fn normalisation_and_labels_are_read() {
    let model = stem_with(metadata());
    for before in [0, model.len()] {
        let whole = [model.clone(), archive("labels.txt", "cat\r\ndog\n", 0, before)].concat();
        let info = load(&whole).info;
        assert_eq!((info.name.as_str(), info.description.as_str()), ("stem", "a first layer"));
        assert_eq!(info.inputs[0].normalisation, [(127.5, 128.0)]);
        assert_eq!(info.inputs[0].description, "a picture");
        assert_eq!(info.outputs[0].labels, ["cat", "dog"]);
    }
}

#[test]
fn a_normalisation_that_cannot_be_counts_as_none() {
    let pixels = |bytes: Vec<u8>, options: &LoadOptions| {
        let file = ModelFile::from_bytes(bytes, options).expect("a valid file");
        (file.inputs()[0].name.clone(), file.pixels())
    };
    let (name, found) = pixels(stem_with(metadata()), &LoadOptions::default());
    assert_eq!(found, [(name, Pixels::normalized(&[(127.5, 128.0)]).expect("numbers"))].into());
    for deviation in [0.0, f32::NAN, f32::INFINITY] {
        let (_, found) = pixels(stem_with(metadata_of(deviation)), &LoadOptions::default());
        assert!(found.is_empty(), "{deviation}: {found:?}");
    }
}

#[test]
fn a_normalisation_is_that_of_its_input_where_another_is_given() {
    let given = HostTensor::new(Dims::new(&[2]).expect("small"), vec![4.0, 3.0]).expect("as many");
    let options = LoadOptions { values: [("extents".to_owned(), given)].into(), ..Default::default() };
    let pixels = |turned: bool| {
        let mut file = reshaped();
        if turned {
            file.inputs.reverse();
        }
        ModelFile::from_bytes(file_with(file, metadata()), &options).expect("a valid file").pixels()
    };
    // The metadata are those of the first input.
    assert_eq!(pixels(false).into_keys().collect::<Vec<_>>(), ["x"]);
    assert!(pixels(true).is_empty());
}

#[test]
fn labels_that_are_not_there_or_compressed_are_left_out() {
    let model = stem_with(metadata());
    for archive in [archive("other.txt", "cat", 0, 0), archive("labels.txt", "cat", 8, 0), Vec::new()] {
        let whole = [model.clone(), archive].concat();
        assert!(load(&whole).info.outputs[0].labels.is_empty());
    }
}

#[test]
fn damaged_metadata_and_archives_never_panic_and_the_network_loads() {
    let (metadata, archive) = (metadata(), archive("labels.txt", "cat\ndog", 0, 0));
    for position in 0..metadata.len() {
        for value in [0, 1, 0x7f, 0xff] {
            let mut damaged = metadata.clone();
            damaged[position] = value;
            assert_eq!(load(&stem_with(damaged)).graph.nodes().len(), 1);
        }
    }
    let model = stem_with(metadata);
    for position in 0..archive.len() {
        for value in [0, 1, 0x7f, 0xff] {
            let mut damaged = archive.clone();
            damaged[position] = value;
            assert_eq!(load(&[model.clone(), damaged].concat()).graph.nodes().len(), 1);
        }
    }
}
