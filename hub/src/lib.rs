//! Models of the Hugging Face hub by their names.
//!
//! [`Hub::fetch`] gives the path of a model's file in the hub's cache, which other programs share. A file that is there is
//! not asked for again, and nothing is fetched that was not named. The files in which an ONNX file has its weights are fetched
//! with it.
//!
//! ```no_run
//! use diptych_hub::Hub;
//!
//! let path = Hub::from_env()?.fetch("onnx-community/silero-vad:onnx/model.onnx")?;
//! # Ok::<(), diptych_hub::Error>(())
//! ```
//!
//! | variable | |
//! |---|---|
//! | `HF_HOME` | the folder of cache and token; `~/.cache/huggingface` unless it is set |
//! | `HF_HUB_CACHE` | the folder of the cache, if it is another one |
//! | `HF_TOKEN` | the token, before that of the file `token` in `HF_HOME` |
//! | `HF_ENDPOINT` | the address of the hub |
//! | `HF_HUB_OFFLINE` | `1`: the cache alone is asked |

#![warn(clippy::expect_used, clippy::panic, clippy::unwrap_used, missing_docs, unreachable_pub)]

mod name;
mod scan;

pub use name::Name;

use hf_hub::api::sync::{ApiBuilder, ApiRepo};
use hf_hub::{Cache, Repo, RepoType};
use std::path::{Path, PathBuf};

/// What goes wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A name is none of a model.
    #[error("{name:?}: found {found}, wanted OWNER/NAME, OWNER/NAME:FILE or OWNER/NAME@REVISION:FILE")]
    Name {
        /// The name as it was given.
        name: String,
        /// What is wrong with it.
        found: String,
    },
    /// A repository has none or several models.
    #[error(
        "{repository}: found {}, wanted one .tflite or .onnx file: name it, as in hf:{repository}:FILE",
        if files.is_empty() { "none".to_owned() } else { files.join(", ") }
    )]
    Choice {
        /// The repository.
        repository: String,
        /// The models that it has.
        files: Vec<String>,
    },
    /// A file is not in the cache, and the hub is not asked.
    #[error("{file} of {repository} is not in {}, and HF_HUB_OFFLINE is set", cache.display())]
    Offline {
        /// The repository.
        repository: String,
        /// The file.
        file: String,
        /// The folder of the cache.
        cache: PathBuf,
    },
    /// The hub cannot be reached, or does not give what was asked for.
    #[error("{what} of {endpoint}: {message}")]
    Request {
        /// What was asked for.
        what: String,
        /// The hub's address.
        endpoint: String,
        /// What it answered.
        message: String,
    },
    /// No folder for the cache is known.
    #[error("found no home folder for the cache: set HF_HOME")]
    NoHome,
    /// A file of the cache cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
}

/// Where models come from, and where they are kept.
#[derive(Debug, Clone)]
pub struct Hub {
    cache: PathBuf,
    endpoint: String,
    token: Option<String>,
    offline: bool,
    shows_progress: bool,
}

/// A variable of the environment that says something.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

impl Hub {
    /// The hub as the environment says.
    ///
    /// # Errors
    /// [`Error::NoHome`] if there is no folder for the cache.
    pub fn from_env() -> Result<Self, Error> {
        let home = variable("HF_HOME").map(PathBuf::from);
        let home = home.or_else(|| Some(std::env::home_dir()?.join(".cache").join("huggingface")));
        let cache = variable("HF_HUB_CACHE").map(PathBuf::from);
        let cache = cache.or_else(|| Some(home.clone()?.join("hub"))).ok_or(Error::NoHome)?;
        let in_file = || {
            let token = std::fs::read_to_string(home?.join("token")).ok()?;
            Some(token.trim().to_owned()).filter(|token| !token.is_empty())
        };
        Ok(Hub {
            cache,
            endpoint: variable("HF_ENDPOINT").unwrap_or_else(|| "https://huggingface.co".to_owned()),
            token: variable("HF_TOKEN").or_else(in_file),
            offline: variable("HF_HUB_OFFLINE").is_some_and(|text| text != "0"),
            shows_progress: false,
        })
    }

    /// A hub at an address, with a folder for what is fetched, and without a token.
    pub fn new(endpoint: impl Into<String>, cache: impl Into<PathBuf>) -> Self {
        let (endpoint, cache) = (endpoint.into(), cache.into());
        Hub { cache, endpoint, token: None, offline: false, shows_progress: false }
    }

    /// With a token, for models that are not everybody's.
    #[must_use]
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Whether the cache alone is asked.
    #[must_use]
    pub fn offline(mut self, offline: bool) -> Self {
        self.offline = offline;
        self
    }

    /// Whether a bar on stderr shows how much was fetched.
    #[must_use]
    pub fn progress(mut self, shown: bool) -> Self {
        self.shows_progress = shown;
        self
    }

    /// The path of a model: of the file that is named, or else of the only .tflite or .onnx file of the repository. The files
    /// in which an ONNX file has its weights lie beside it.
    ///
    /// # Errors
    /// [`Error::Name`] for a name that is none; [`Error::Choice`] with the files, if none is named and there is not one
    /// alone; [`Error::Offline`], [`Error::Request`] and [`Error::Io`] if a file cannot be had.
    pub fn fetch(&self, name: &str) -> Result<PathBuf, Error> {
        let name: Name = name.parse()?;
        let repository = Asked { hub: self, name: &name, repo: repo(&name) };
        let file = match &name.file {
            Some(file) => file.clone(),
            None => repository.only_model()?,
        };
        let path = repository.get(&file)?;
        if file.to_ascii_lowercase().ends_with(".onnx") {
            let io = |source| Error::Io { path: path.clone(), source };
            for location in scan::external_files(&path).map_err(io)? {
                // What leads out of the folder is not read by the loader either.
                if name::is_plain(&location) {
                    let folder =
                        file.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
                    repository.get(&format!("{folder}{location}"))?;
                }
            }
        }
        Ok(path)
    }
}

fn repo(name: &Name) -> Repo {
    Repo::with_revision(name.repository.clone(), RepoType::Model, name.revision.clone())
}

fn is_model(file: &str) -> bool {
    let file = file.to_ascii_lowercase();
    [".tflite", ".onnx"].iter().any(|end| file.ends_with(end))
}

/// A repository that a file is wanted of.
struct Asked<'a> {
    hub: &'a Hub,
    name: &'a Name,
    repo: Repo,
}

impl Asked<'_> {
    fn failed(&self, what: &str, message: impl Into<String>) -> Error {
        let what = format!("{what} of {}", self.name.repository);
        Error::Request { what, endpoint: self.hub.endpoint.clone(), message: message.into() }
    }

    /// Asks the hub. What panics there is an error here.
    fn ask<T>(
        &self,
        what: &str,
        question: impl FnOnce(&ApiRepo) -> Result<T, hf_hub::api::sync::ApiError>,
    ) -> Result<T, Error> {
        let asked = || {
            let Hub { cache, endpoint, token, shows_progress, .. } = self.hub.clone();
            let builder = ApiBuilder::from_cache(Cache::new(cache)).with_endpoint(endpoint).with_token(token);
            let api = builder.with_progress(shows_progress).with_retries(3).build()?;
            question(&api.repo(self.repo.clone()))
        };
        let answer = std::panic::catch_unwind(std::panic::AssertUnwindSafe(asked));
        let answer =
            answer.map_err(|_| self.failed(what, "an answer that the crate hf-hub does not expect"))?;
        answer.map_err(|error| self.failed(what, error.to_string()))
    }

    /// The path of a file, from the cache if it is there.
    fn get(&self, file: &str) -> Result<PathBuf, Error> {
        if let Some(path) = Cache::new(self.hub.cache.clone()).repo(self.repo.clone()).get(file) {
            return Ok(path);
        }
        if self.hub.offline {
            return Err(Error::Offline {
                repository: self.name.repository.clone(),
                file: file.to_owned(),
                cache: self.hub.cache.clone(),
            });
        }
        self.ask(file, |repo| repo.download(file))
    }

    /// The only model of the repository: of what the hub lists, or else of what the cache has.
    fn only_model(&self) -> Result<String, Error> {
        let files = if self.hub.offline {
            self.cached()
        } else {
            match self.ask("the list", ApiRepo::info) {
                Ok(info) => info.siblings.into_iter().map(|file| file.rfilename).collect(),
                Err(error) => {
                    let cached = self.cached();
                    if cached.iter().any(|file| is_model(file)) { cached } else { return Err(error) }
                }
            }
        };
        let mut models: Vec<String> =
            files.into_iter().filter(|file| is_model(file) && name::is_plain(file)).collect();
        models.sort_unstable();
        match models.as_slice() {
            [one] => Ok(one.clone()),
            _ => Err(Error::Choice { repository: self.name.repository.clone(), files: models }),
        }
    }

    /// The files that the cache has of the repository.
    fn cached(&self) -> Vec<String> {
        let folder = self.hub.cache.join(self.repo.folder_name());
        let commit = std::fs::read_to_string(folder.join("refs").join(self.repo.revision()));
        let mut files = Vec::new();
        if let Ok(commit) = commit
            && name::is_plain(commit.trim())
        {
            listed(&folder.join("snapshots").join(commit.trim()), "", 8, &mut files);
        }
        files
    }
}

/// The files in a folder and its folders, down to a depth.
fn listed(folder: &Path, before: &str, depth: usize, files: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let path = entry.path();
        if path.is_file() {
            files.push(format!("{before}{name}"));
        } else if path.is_dir() && depth > 0 {
            listed(&path, &format!("{before}{name}/"), depth - 1, files);
        }
    }
}
