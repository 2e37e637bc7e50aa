//! Attention that is refused, with the reason.

use super::refused;
use super::writer::{Attribute, File, Node, integers};

/// A `GroupQueryAttention` of four heads that share two, with these attributes and more inputs.
fn file(attributes: &[Attribute], more: &[&'static str]) -> File<'static> {
    let mut inputs = vec!["q", "k", "v", "", "", "lengths", "total"];
    inputs.extend(more);
    File {
        inputs: vec![("q", vec![1, 1, 8]), ("k", vec![1, 1, 4]), ("v", vec![1, 1, 4])],
        outputs: vec!["y"],
        constants: vec![integers("lengths", &[1], &[0]), integers("total", &[], &[1])],
        nodes: vec![Node {
            domain: "com.microsoft",
            attributes: attributes.to_vec(),
            ..Node::new("GroupQueryAttention", &inputs, &["y", "keys", "values"])
        }],
        ..File::default()
    }
}

#[test]
fn attention_says_what_it_cannot_take() {
    let heads = [Attribute::Int("num_heads", 4), Attribute::Int("kv_num_heads", 2)];
    let with = |more: Attribute| file(&[&heads[..], &[more]].concat(), &[]);
    for (file, reason) in [
        (file(&[], &[]), "8 features for 0 heads that share 0"),
        (
            file(&[Attribute::Int("num_heads", i64::MAX), Attribute::Int("kv_num_heads", 1)], &[]),
            "for 0 heads",
        ),
        (with(Attribute::Int("local_window_size", 0)), "a window of 0 keys"),
        (with(Attribute::Int("sliding_window_cache", 1)), "sliding_window_cache"),
        (with(Attribute::Int("do_rotary", 1)), "found no input 7"),
    ] {
        let found = refused(&file.bytes());
        assert!(found.contains(reason), "{found}");
    }
    let mut long = file(&heads, &[]);
    long.constants[1] = integers("total", &[], &[2]);
    let found = refused(&long.bytes());
    assert!(found.contains("found 0 places of earlier runs, wanted 1"), "{found}");
    long.constants[1] = integers("total", &[], &[0]);
    let found = refused(&long.bytes());
    assert!(found.contains("found [0] places in all, wanted at least 1"), "{found}");
}
