//! The share of parts found (PCK) on the pictures of a folder whose truth is known.
//!
//! The folder holds pictures and a `truth.json`, as `train/figures.py set` writes it:
//!
//! ```json
//! {"pictures": [{"file": "0000.jpg", "people": [{"height": 180.5, "keypoints": [[120.3, 88.0, 1.0]]}]}]}
//! ```
//!
//! `height` is the figure's, standing, in pixels. Of its 17 keypoints each is x, y and 1 for a part that
//! is seen, 0.5 for one that is hidden, 0 for one outside the picture, which is not counted.

use crate::model;
use crate::network::Network;
use crate::options::Options;
use crate::progress;
use crate::tables::{Latency, table};
use anyhow::{Context as _, Result, ensure};
use diptych_decode::Pose;
use diptych_decode::picture::Picture;
use diptych_decode::skeleton::{NAMES, PARTS};
use serde::Deserialize;
use serde_json::json;
use std::path::Path;

/// A part is found if it lies within this share of the figure's height from the truth.
const ALPHA: f32 = 0.1;

/// What a `truth.json` holds.
#[derive(Debug, Deserialize)]
pub struct Truth {
    pub pictures: Vec<PictureTruth>,
}

#[derive(Debug, Deserialize)]
pub struct PictureTruth {
    pub file: String,
    pub people: Vec<Person>,
}

#[derive(Debug, Deserialize)]
pub struct Person {
    pub height: f32,
    pub keypoints: Vec<[f32; 3]>,
}

impl Truth {
    /// Reads and checks the text of a `truth.json`.
    pub fn parse(text: &str) -> Result<Self> {
        let truth: Truth = serde_json::from_str(text)?;
        for picture in &truth.pictures {
            for person in &picture.people {
                let (found, file) = (person.keypoints.len(), &picture.file);
                ensure!(found == PARTS, "{file}: found {found} keypoints, wanted {PARTS}");
                ensure!(person.height > 0.0, "{file}: found height {}, wanted a positive one", person.height);
            }
        }
        Ok(truth)
    }
}

/// What was found, summed over pictures.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Score {
    pub pictures: usize,
    /// People of the truth, those of them that were found, and found ones that are nobody.
    pub people: usize,
    pub met: usize,
    pub nobody: usize,
    /// Parts within reach, and parts there are, by part.
    pub hits: [usize; PARTS],
    pub parts: [usize; PARTS],
    /// Parts within reach, and parts there are, of the parts that are seen.
    pub seen_hits: usize,
    pub seen: usize,
}

impl Score {
    /// Adds a picture. Each person of the truth is met by the pose, not yet taken, with the most of
    /// their parts within reach; without such a pose all of their parts are missed.
    pub fn add(&mut self, people: &[Person], poses: &[Pose]) {
        let mut free: Vec<&Pose> = poses.iter().collect();
        self.pictures += 1;
        for person in people {
            let count = |pose: &Pose| (0..PARTS).filter(|&part| within(person, pose, part)).count();
            let best = (0..free.len()).max_by_key(|&index| count(free[index]));
            let met = best.filter(|&index| count(free[index]) > 0).map(|index| free.remove(index));
            self.people += 1;
            self.met += usize::from(met.is_some());
            for part in (0..PARTS).filter(|&part| person.keypoints[part][2] > 0.0) {
                let hit = usize::from(met.is_some_and(|pose| within(person, pose, part)));
                self.hits[part] += hit;
                self.parts[part] += 1;
                if person.keypoints[part][2] > 0.75 {
                    self.seen_hits += hit;
                    self.seen += 1;
                }
            }
        }
        self.nobody += free.len();
    }

    /// The share of all parts in the pictures.
    pub fn pck(&self) -> f64 {
        self.hits.iter().sum::<usize>() as f64 / self.parts.iter().sum::<usize>().max(1) as f64
    }

    /// The share of the parts that are seen.
    pub fn pck_seen(&self) -> f64 {
        self.seen_hits as f64 / self.seen.max(1) as f64
    }
}

fn within(person: &Person, pose: &Pose, part: usize) -> bool {
    let [x, y, seen] = person.keypoints[part];
    let found = &pose.keypoints[part];
    seen > 0.0 && (found.x - x).hypot(found.y - y) <= ALPHA * person.height
}

/// Evaluates a folder, and gives its report.
pub fn evaluate(options: &Options, folder: &Path, model: &Path, network: &mut Network) -> Result<String> {
    let path = folder.join("truth.json");
    let text = std::fs::read_to_string(&path).with_context(|| format!("{}", path.display()))?;
    let truth = Truth::parse(&text).with_context(|| format!("{}", path.display()))?;
    ensure!(!truth.pictures.is_empty(), "{}: found no pictures", path.display());
    let bar = progress::bar("evaluating", truth.pictures.len() as u64);
    let (mut score, mut times) = (Score::default(), Vec::new());
    for row in &truth.pictures {
        let picture = Picture::open(&folder.join(&row.file))?;
        let (heads, time) = network.run(&network.model.input(&picture)?)?;
        times.push(time);
        score.add(
            &row.people,
            &model::poses(&heads, &network.model, picture.pixels.dimensions(), options.several())?,
        );
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(if options.json {
        report_json(&score, model, network)
    } else {
        report(&score, model, network, &times)
    })
}

fn report_json(score: &Score, model: &Path, network: &Network) -> String {
    let share = |part: usize| score.hits[part] as f64 / score.parts[part].max(1) as f64;
    let object = json!({
        "model": model.display().to_string(),
        "device": network.device,
        "pictures": score.pictures,
        "people": score.people,
        "people_found": score.met,
        "poses_of_nobody": score.nobody,
        "pck": score.pck(),
        "pck_seen": score.pck_seen(),
        "parts": (0..PARTS).map(|part| json!({ "part": NAMES[part], "pck": share(part) })).collect::<Vec<_>>(),
    });
    format!("{object:#}\n")
}

fn report(score: &Score, model: &Path, network: &Network, times: &[std::time::Duration]) -> String {
    let rows = (0..PARTS).map(|part| {
        let (hits, parts) = (score.hits[part], score.parts[part]);
        let share = hits as f64 / parts.max(1) as f64;
        vec![NAMES[part].to_owned(), hits.to_string(), parts.to_string(), format!("{share:.3}")]
    });
    let median = Latency::of(times).map_or(0.0, |latency| latency.median_ms);
    format!(
        "model    {}\ndevice   {}\n\n{}\n\npictures {}\npeople   {} found of {}, and {} poses of nobody\n\
         PCK@{ALPHA}  {:.4} of all parts in the pictures, {:.4} of those seen\nrun      median {median:.3} ms\n",
        model.display(),
        network.device,
        table(&["part", "found", "there are", "share"], &[1, 2, 3], rows),
        score.pictures,
        score.met,
        score.people,
        score.nobody,
        score.pck(),
        score.pck_seen(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use diptych_decode::Keypoint;

    fn person(x: f32) -> Person {
        let mut keypoints = vec![[x, 50.0, 1.0]; PARTS];
        keypoints[3][2] = 0.5; // hidden
        keypoints[4][2] = 0.0; // outside
        Person { height: 100.0, keypoints }
    }

    fn pose(x: f32) -> Pose {
        Pose { keypoints: [Keypoint { x, y: 50.0, score: 1.0 }; PARTS], score: 1.0 }
    }

    #[test]
    fn a_tenth_of_the_height_is_the_limit() {
        let mut score = Score::default();
        score.add(&[person(100.0)], &[pose(110.0)]);
        assert_eq!((score.pck(), score.pck_seen(), score.met), (1.0, 1.0, 1));
        assert_eq!((score.parts[3], score.parts[4], score.seen), (1, 0, 15));
        score.add(&[person(100.0)], &[pose(110.1)]);
        assert_eq!((score.pck(), score.met, score.nobody), (0.5, 1, 1));
    }

    #[test]
    fn people_are_met_once_and_extra_poses_are_counted() {
        let mut score = Score::default();
        score.add(&[person(100.0), person(105.0), person(300.0)], &[pose(104.0), pose(500.0)]);
        assert_eq!((score.people, score.met, score.nobody), (3, 1, 1));
        assert_eq!(score.pck(), 1.0 / 3.0);
        score.add(&[], &[]);
        assert_eq!(score.pictures, 2);
    }

    #[test]
    fn a_wrong_truth_is_refused_with_what_was_found() {
        let text =
            r#"{"pictures": [{"file": "a.jpg", "people": [{"height": 9, "keypoints": [[1, 2, 1]]}]}]}"#;
        let error = Truth::parse(text).expect_err("one keypoint").to_string();
        assert!(error.contains("a.jpg: found 1 keypoints, wanted 17"), "{error}");
        assert!(Truth::parse("{}").is_err() && Truth::parse("[").is_err());
        let text = text.replace("[[1, 2, 1]]", &format!("{:?}", vec![[1, 2, 1]; PARTS])).replace("9,", "0,");
        let error = Truth::parse(&text).expect_err("no height").to_string();
        assert!(error.contains("found height 0"), "{error}");
    }
}
