//! The report of a run: tables for people, one JSON object for programs.

use crate::tables::{Latency, milliseconds, rounded, table};
use comfy_table::Table;
use diptych_decode::Pose;
use diptych_decode::skeleton::NAMES;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

/// One node of the network and its time on the device.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeRow {
    pub name: String,
    pub op: String,
    pub kernel: String,
    pub work_group: [u32; 3],
    pub ms: f64,
}

/// Everything that is reported.
#[derive(Debug, Clone)]
pub struct Report<'a> {
    pub model: &'a Path,
    pub image: &'a Path,
    /// Width and height of the photograph, upright.
    pub image_size: (u32, u32),
    /// Height and width of the network's input.
    pub input_size: [usize; 2],
    /// The device and why it was chosen.
    pub device: String,
    /// Whether several people were looked for.
    pub multi: bool,
    /// In pixels of the photograph.
    pub poses: &'a [Pose],
    /// How long it took to make the network ready.
    pub prepared: Duration,
    /// The first run, from host to host.
    pub first: Duration,
    /// The runs after it.
    pub latency: Option<Latency>,
    pub profile: Option<&'a [NodeRow]>,
    /// The drawing.
    pub output: &'a Path,
}

impl Report<'_> {
    /// One object: `keypoints` and `score` of the one person, or `poses` of several.
    pub fn json(&self) -> Value {
        let mut object = json!({
            "model": self.model.display().to_string(),
            "image": {
                "path": self.image.display().to_string(),
                "width": self.image_size.0,
                "height": self.image_size.1,
            },
            "input": { "height": self.input_size[0], "width": self.input_size[1] },
            "device": self.device,
            "output": self.output.display().to_string(),
            "prepared_ms": rounded(milliseconds(self.prepared), 3),
            "first_run_ms": rounded(milliseconds(self.first), 4),
            "latency": self.latency.map(|latency| json!({
                "runs": latency.runs,
                "min_ms": rounded(latency.min_ms, 4),
                "median_ms": rounded(latency.median_ms, 4),
                "p90_ms": rounded(latency.p90_ms, 4),
            })),
            "profile": self.profile.map(|rows| rows.iter().map(|row| json!({
                "name": row.name,
                "op": row.op,
                "kernel": row.kernel,
                "work_group": row.work_group,
                "ms": rounded(row.ms, 6),
            })).collect::<Vec<_>>()),
        });
        if self.multi {
            object["poses"] = self.poses.iter().map(pose_json).collect();
        } else if let Some(pose) = self.poses.first() {
            let mut pose = pose_json(pose);
            object["score"] = pose["score"].take();
            object["keypoints"] = pose["keypoints"].take();
        }
        object
    }

    /// Tables and sentences.
    pub fn text(&self) -> String {
        let mut out = format!(
            "model    {} (input {}x{})\nimage    {} ({}x{})\ndevice   {}\n\n",
            self.model.display(),
            self.input_size[1],
            self.input_size[0],
            self.image.display(),
            self.image_size.0,
            self.image_size.1,
            self.device,
        );
        if self.multi {
            let people = match self.poses.len() {
                0 => "nobody was found".to_owned(),
                1 => "1 person".to_owned(),
                count => format!("{count} people"),
            };
            out += &format!("{people}\n");
        }
        for (index, pose) in self.poses.iter().enumerate() {
            if self.multi {
                out += &format!("\nperson {}, score {:.3}\n", index + 1, pose.score);
            }
            out += &format!("{}\n", keypoint_table(pose));
        }
        out += &format!(
            "\nready    after {:.0} ms\nfirst    run {:.3} ms, host to host\n",
            milliseconds(self.prepared),
            milliseconds(self.first)
        );
        if let Some(latency) = self.latency {
            out += &format!(
                "then     {} runs: median {:.3} ms, p90 {:.3} ms, min {:.3} ms\n",
                latency.runs, latency.median_ms, latency.p90_ms, latency.min_ms
            );
        }
        if let Some(rows) = self.profile {
            out += &format!("\n{}\n", profile_table(rows));
        }
        out += &format!("drawing  {}\n", self.output.display());
        out
    }
}

fn pose_json(pose: &Pose) -> Value {
    let keypoints = pose.keypoints.iter().zip(NAMES).map(|(keypoint, name)| {
        json!({
            "part": name,
            "x": rounded(keypoint.x.into(), 3),
            "y": rounded(keypoint.y.into(), 3),
            "score": rounded(keypoint.score.into(), 6),
        })
    });
    json!({ "score": rounded(pose.score.into(), 6), "keypoints": keypoints.collect::<Vec<_>>() })
}

fn keypoint_table(pose: &Pose) -> Table {
    let rows = pose.keypoints.iter().zip(NAMES).map(|(keypoint, name)| {
        let number = |value: f32, digits: usize| format!("{value:.digits$}");
        vec![name.to_owned(), number(keypoint.x, 1), number(keypoint.y, 1), number(keypoint.score, 3)]
    });
    table(&["part", "x", "y", "score"], &[1, 2, 3], rows)
}

fn profile_table(rows: &[NodeRow]) -> Table {
    let total: f64 = rows.iter().map(|row| row.ms).sum();
    let share = |ms: f64| if total > 0.0 { format!("{:.1} %", 100.0 * ms / total) } else { "-".to_owned() };
    let nodes = rows.iter().map(|row| {
        let [x, y, z] = row.work_group;
        vec![
            row.name.clone(),
            row.op.clone(),
            row.kernel.clone(),
            format!("{x}x{y}x{z}"),
            format!("{:.4}", row.ms),
            share(row.ms),
        ]
    });
    let blank = String::new;
    let sum = vec!["total".to_owned(), blank(), blank(), blank(), format!("{total:.4}"), share(total)];
    table(&["node", "op", "kernel", "work-group", "ms", "share"], &[3, 4, 5], nodes.chain([sum]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use diptych_decode::Keypoint;
    use diptych_decode::skeleton::PARTS;

    fn pose() -> Pose {
        Pose { keypoints: [Keypoint { x: 1.2345678, y: 2.0, score: 0.9 }; PARTS], score: 0.9 }
    }

    fn report<'a>(poses: &'a [Pose], multi: bool, profile: Option<&'a [NodeRow]>) -> Report<'a> {
        Report {
            model: Path::new("posenet.tflite"),
            image: Path::new("photo.jpg"),
            image_size: (640, 480),
            input_size: [257, 257],
            device: "a device".to_owned(),
            multi,
            poses,
            prepared: Duration::from_millis(70),
            first: Duration::from_millis(9),
            latency: Latency::of(&[Duration::from_millis(2)]),
            profile,
            output: Path::new("pose.png"),
        }
    }

    fn nodes() -> Vec<NodeRow> {
        let row = |name: &str, ms| NodeRow {
            name: name.to_owned(),
            op: "conv2d".to_owned(),
            kernel: "conv2d_direct".to_owned(),
            work_group: [8, 4, 1],
            ms,
        };
        vec![row("stem", 0.75), row("head", 0.25)]
    }

    #[test]
    fn json_of_one_person() {
        let (poses, nodes) = ([pose()], nodes());
        let object = report(&poses, false, Some(&nodes)).json();
        assert_eq!(object["keypoints"].as_array().map(Vec::len), Some(PARTS));
        assert_eq!(object["keypoints"][5]["part"], "leftShoulder");
        assert_eq!(object["keypoints"][5]["x"], 1.235);
        assert_eq!((&object["score"], &object["poses"]), (&json!(0.9), &Value::Null));
        assert_eq!(object["latency"]["median_ms"], 2.0);
        assert_eq!(object["profile"][0]["work_group"], json!([8, 4, 1]));
    }

    #[test]
    fn json_of_several_people_and_of_nobody() {
        let poses = [pose(), pose()];
        let object = report(&poses, true, None).json();
        assert_eq!(object["poses"].as_array().map(Vec::len), Some(2));
        assert_eq!((&object["keypoints"], &object["profile"]), (&Value::Null, &Value::Null));
        assert_eq!(report(&[], true, None).json()["poses"], json!([]));
    }

    #[test]
    fn text_has_parts_times_shares_and_files() {
        let (poses, nodes) = ([pose()], nodes());
        let text = report(&poses, false, Some(&nodes)).text();
        let wanted = [
            "leftShoulder",
            "0.900",
            "a device",
            "pose.png",
            "after 70 ms",
            "run 9.000 ms",
            "median 2.000 ms",
            "75.0 %",
            "8x4x1",
        ];
        for wanted in wanted {
            assert!(text.contains(wanted), "{wanted} in\n{text}");
        }
        assert!(report(&[], true, None).text().contains("nobody"));
    }
}
