//! What was found in a picture, in words and as JSON.

use crate::hand::{self, Hand};
use crate::segment::Map;
use crate::tables::{rounded, table};
use diptych_decode::classification::{self, Scored};
use diptych_decode::{Detection, Keypoint};
use image::RgbImage;
use serde_json::{Value, json};

/// The result of a task, in pixels of the picture.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    /// How likely each pixel is to be a person's; above `least` it is taken for one.
    Mask {
        map: Map<f32>,
        least: f32,
    },
    /// The class of each pixel.
    Classes(Map<u16>),
    Hand(Hand),
    /// Boxes, the best first, and the names of their points.
    Boxes {
        detections: Vec<Detection>,
        points: Vec<&'static str>,
    },
    /// The best classes.
    Scores(Vec<Scored>),
    /// The picture in another style.
    Styled(RgbImage),
}

/// The name of a class, or its number.
pub fn label(labels: &[String], class: usize) -> String {
    classification::label(labels, class).map_or_else(|| format!("class {class}"), str::to_owned)
}

fn pixels(value: f32) -> f64 {
    rounded(value.into(), 2)
}

fn share(value: impl Into<f64>) -> f64 {
    rounded(value.into(), 5)
}

fn position(name: &str, [x, y]: [f32; 2]) -> Value {
    json!({ "name": name, "x": pixels(x), "y": pixels(y) })
}

impl Found {
    /// One object.
    pub fn json(&self, labels: &[String]) -> Value {
        match self {
            Found::Mask { map, least } => {
                let (mean, above, area) = map.statistics(*least);
                json!({ "mask": { "mean": share(mean), "share": share(above), "box": area } })
            }
            Found::Classes(map) => {
                let one = |(class, part): (usize, f64)| json!({ "class": class, "label": label(labels, class), "share": share(part) });
                json!({ "classes": map.shares().into_iter().map(one).collect::<Vec<_>>() })
            }
            Found::Hand(hand) => {
                let joints = hand.joints.iter().zip(hand::NAMES).map(|(&[x, y, z], name)| {
                    let mut at = position(name, [x, y]);
                    at["z"] = json!(pixels(z));
                    at
                });
                let side = hand.side.map(|(side, score)| json!({ "side": side, "score": share(score) }));
                let joints = hand.present.then(|| joints.collect::<Vec<_>>());
                json!({ "hand": { "score": share(hand.score), "present": hand.present, "side": side, "joints": joints } })
            }
            Found::Boxes { detections, points } => {
                let one = |one: &Detection| {
                    let named = points.iter().zip(&one.keypoints);
                    let named = named.map(|(name, &Keypoint { x, y, .. })| position(name, [x, y]));
                    json!({
                        "label": label(labels, one.class),
                        "score": share(one.score),
                        "box": one.bounding_box.map(pixels),
                        "points": named.collect::<Vec<_>>(),
                    })
                };
                json!({ "boxes": detections.iter().map(one).collect::<Vec<_>>() })
            }
            Found::Scores(best) => {
                let one = |one: &Scored| json!({ "class": one.class, "label": label(labels, one.class), "score": share(one.score) });
                json!({ "scores": best.iter().map(one).collect::<Vec<_>>() })
            }
            Found::Styled(picture) => {
                json!({ "styled": { "width": picture.width(), "height": picture.height() } })
            }
        }
    }

    /// Tables and sentences.
    pub fn text(&self, labels: &[String]) -> String {
        let number = |value: f32, digits: usize| format!("{value:.digits$}");
        let percent = |value: f64| format!("{:.2} %", 100.0 * value);
        match self {
            Found::Mask { map, least } => {
                let (mean, above, area) = map.statistics(*least);
                let at = match area {
                    Some([left, top, right, bottom]) => {
                        format!("from ({left}, {top}) to ({right}, {bottom})")
                    }
                    None => "nowhere".to_owned(),
                };
                format!("person   {} of the pixels, {at}; mean {mean:.4}", percent(above))
            }
            Found::Classes(map) => {
                let rows =
                    map.shares().into_iter().map(|(class, part)| vec![label(labels, class), percent(part)]);
                table(&["class", "pixels"], &[1], rows).to_string()
            }
            Found::Hand(hand) if !hand.present => format!("no hand: score {:.3}", hand.score),
            Found::Hand(hand) => {
                let side = match hand.side {
                    Some((side, score)) => format!(", a {side} hand ({score:.3})"),
                    None => String::new(),
                };
                let rows = hand.joints.iter().zip(hand::NAMES).map(|(&[x, y, z], name)| {
                    vec![name.to_owned(), number(x, 1), number(y, 1), number(z, 1)]
                });
                let joints = table(&["joint", "x", "y", "depth"], &[1, 2, 3], rows);
                format!("a hand: score {:.3}{side}\n\n{joints}", hand.score)
            }
            Found::Boxes { detections, .. } if detections.is_empty() => "nothing was found".to_owned(),
            Found::Boxes { detections, points } => {
                let rows = detections.iter().map(|one| {
                    let area = one.bounding_box.map(|value| number(value, 1));
                    let mut row = vec![label(labels, one.class), number(one.score, 3)];
                    row.extend(area);
                    row
                });
                let header = ["what", "score", "left", "top", "right", "bottom"];
                let mut text = table(&header, &[1, 2, 3, 4, 5], rows).to_string();
                if !points.is_empty() {
                    let numbers = |index: usize| {
                        if detections.len() > 1 { format!("{} ", index + 1) } else { String::new() }
                    };
                    let rows = detections.iter().enumerate().flat_map(|(index, one)| {
                        points.iter().zip(&one.keypoints).map(move |(name, &Keypoint { x, y, .. })| {
                            vec![format!("{}{name}", numbers(index)), number(x, 1), number(y, 1)]
                        })
                    });
                    text += &format!("\n\n{}", table(&["point", "x", "y"], &[1, 2], rows));
                }
                text
            }
            Found::Scores(best) => {
                let rows = best
                    .iter()
                    .map(|one| vec![one.class.to_string(), label(labels, one.class), number(one.score, 4)]);
                table(&["class", "label", "score"], &[0, 2], rows).to_string()
            }
            Found::Styled(picture) => format!("styled   {} x {}", picture.width(), picture.height()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_reported_with_their_points() {
        let one = Detection {
            score: 0.75,
            class: 1,
            bounding_box: [1.0, 2.0, 3.5, 4.0],
            keypoints: vec![Keypoint::new([2.0, 3.0], 0.75)],
        };
        let labels = ["a".to_owned(), "face".to_owned()];
        let found = Found::Boxes { detections: vec![one], points: vec!["nose"] };
        let object = found.json(&labels);
        assert_eq!(object["boxes"][0]["label"], "face");
        assert_eq!(object["boxes"][0]["box"], json!([1.0, 2.0, 3.5, 4.0]));
        assert_eq!(object["boxes"][0]["points"][0], json!({ "name": "nose", "x": 2.0, "y": 3.0 }));
        for word in ["face", "0.750", "3.5", "nose"] {
            assert!(found.text(&labels).contains(word), "{word} in\n{}", found.text(&labels));
        }
        let none = Found::Boxes { detections: Vec::new(), points: Vec::new() };
        assert_eq!(
            (none.json(&[])["boxes"].clone(), none.text(&[])),
            (json!([]), "nothing was found".to_owned())
        );
    }

    #[test]
    fn classes_without_names_have_numbers() {
        let found = Found::Scores(vec![Scored { class: 7, score: 0.5 }]);
        assert_eq!(found.json(&[])["scores"][0]["label"], "class 7");
        assert_eq!(label(&["".to_owned()], 0), "class 0");
    }
}
