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
//! | `HF_HUB_OFFLINE` | `1`, `ON`, `YES` or `TRUE`, in any case: the cache alone is asked |
//!
//! The hub at `HF_ENDPOINT` must be trusted: models come from it, and the token is sent to it. Where it redirects to
//! another host, the token is not sent there. A file is put into the cache when all of its bytes have come; the beginning
//! of one is kept, and the next call goes on from there.

#![warn(clippy::expect_used, clippy::panic, clippy::unwrap_used, missing_docs, unreachable_pub)]

mod cache;
mod download;
mod name;
mod pace;
mod progress;
mod scan;

pub use name::Name;

use cache::Folder;
use download::{Client, Trouble};
use std::path::PathBuf;
use std::time::Duration;

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
    #[error("{file} of {repository} is not in {}, and the hub is not asked (HF_HUB_OFFLINE or Hub::offline)", cache.display())]
    Offline {
        /// The repository.
        repository: String,
        /// The file.
        file: String,
        /// The folder of the cache.
        cache: PathBuf,
    },
    /// A model has weights in a file that is not in its folder.
    #[error("{file} of {repository}: found weights in {location:?}, wanted a file in the model's folder")]
    Weights {
        /// The repository.
        repository: String,
        /// The model's file.
        file: String,
        /// The file of its weights, as it is named there.
        location: String,
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
    /// A file of the cache cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
}

/// Where models come from, and where they are kept.
#[derive(Clone)]
pub struct Hub {
    cache: PathBuf,
    endpoint: String,
    token: Option<String>,
    offline: bool,
    shows_progress: bool,
    time_limit: Duration,
}

/// Without the token, so that no log has it.
impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Hub { cache, endpoint, token, offline, shows_progress, time_limit } = self;
        f.debug_struct("Hub")
            .field("cache", cache)
            .field("endpoint", endpoint)
            .field("token", &token.as_ref().map(|_| "not shown"))
            .field("offline", offline)
            .field("shows_progress", shows_progress)
            .field("time_limit", time_limit)
            .finish()
    }
}

/// How long a hub is waited for unless the application says so.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// The longest limit: a clock cannot be asked for any time.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// Whether a variable's text means yes, as `huggingface_hub` reads it.
fn means_yes(text: &str) -> bool {
    ["1", "on", "yes", "true"].iter().any(|yes| text.eq_ignore_ascii_case(yes))
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
        let endpoint = variable("HF_ENDPOINT").unwrap_or_else(|| "https://huggingface.co".to_owned());
        let token = variable("HF_TOKEN").or_else(in_file);
        let offline = variable("HF_HUB_OFFLINE").is_some_and(|text| means_yes(&text));
        Ok(Hub { token, offline, ..Hub::new(endpoint, cache) })
    }

    /// A hub at an address, with a folder for what is fetched, and without a token.
    pub fn new(endpoint: impl Into<String>, cache: impl Into<PathBuf>) -> Self {
        let endpoint = endpoint.into().trim_end_matches('/').to_owned();
        Hub {
            cache: cache.into(),
            endpoint,
            token: None,
            offline: false,
            shows_progress: false,
            time_limit: TIME_LIMIT,
        }
    }

    /// Sends a token, for models that are not everybody's.
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

    /// How long the hub is waited for: until an answer begins, and until more of a file comes. A minute unless it is set, and a day at most;
    /// a connection is waited for half a minute at most. A file that comes slowly may take longer, if it comes by a kilobyte a
    /// second, taken over this limit. Another process that fetches the same file is waited for as long as its part of the file
    /// grows, and five times this limit after that.
    #[must_use]
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit.min(LONGEST);
        self
    }

    /// Whether a bar on stderr shows how much was fetched, if that is a terminal.
    #[must_use]
    pub fn progress(mut self, shown: bool) -> Self {
        self.shows_progress = shown;
        self
    }

    /// The path of a model: of the file that is named, or else of the only .tflite or .onnx file of the repository. The files
    /// in which an ONNX file has its weights lie beside it, and are of the same commit.
    ///
    /// # Errors
    /// [`Error::Name`] for a name that is none; [`Error::Choice`] with the files, if none is named and there is not one
    /// alone; [`Error::Weights`] if weights would lie outside of the model's folder; [`Error::Offline`],
    /// [`Error::Request`] and [`Error::Io`] if a file cannot be had.
    pub fn fetch(&self, name: &str) -> Result<PathBuf, Error> {
        let name: Name = name.parse()?;
        let asked = Asked { hub: self, name: &name, folder: Folder::new(&self.cache, &name.repository) };
        let file = match &name.file {
            Some(file) => file.clone(),
            None => asked.only_model()?,
        };
        let (path, commit) = asked.get(&name.revision, &file)?;
        if file.to_ascii_lowercase().ends_with(".onnx") {
            let io = |source| Error::Io { path: path.clone(), source };
            let folder = file.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
            for location in scan::external_files(&path).map_err(io)? {
                let Some(weights) = name::within(&location) else {
                    return Err(Error::Weights { repository: name.repository, file, location });
                };
                asked.get(&commit, &format!("{folder}{weights}"))?;
            }
        }
        Ok(path)
    }
}

fn is_model(file: &str) -> bool {
    let file = file.to_ascii_lowercase();
    [".tflite", ".onnx"].iter().any(|end| file.ends_with(end))
}

/// A repository that a file is wanted of.
struct Asked<'a> {
    hub: &'a Hub,
    name: &'a Name,
    folder: Folder,
}

impl Asked<'_> {
    /// Asks the hub.
    fn ask<T>(&self, what: &str, question: impl FnOnce(&Client) -> Result<T, Trouble>) -> Result<T, Error> {
        let Hub { endpoint, token, shows_progress, time_limit, .. } = self.hub;
        let agent = download::agent(*time_limit);
        let client = Client {
            agent,
            endpoint,
            token: token.as_deref(),
            patience: *time_limit,
            // A process that tries again pauses, and connects anew.
            limit: *time_limit * 5,
            shows_progress: *shows_progress,
        };
        question(&client).map_err(|trouble| match trouble {
            Trouble::Passing(message) | Trouble::Lasting(message) => {
                let what = format!("{what} of {}", self.name.repository);
                Error::Request { what, endpoint: endpoint.clone(), message }
            }
            Trouble::Disk(path, source) => Error::Io { path, source },
        })
    }

    /// The path of a file and its commit, from the cache if it is there.
    fn get(&self, revision: &str, file: &str) -> Result<(PathBuf, String), Error> {
        if let Some(commit) = self.folder.commit(revision)
            && let Some(path) = self.folder.file(&commit, file)
        {
            return Ok((path, commit));
        }
        let repository = &self.name.repository;
        if self.hub.offline {
            let cache = self.hub.cache.clone();
            return Err(Error::Offline { repository: repository.clone(), file: file.to_owned(), cache });
        }
        self.ask(file, |client| client.fetch(&self.folder, repository, revision, file))
    }

    /// The only model of the repository: of what the hub lists, or else of what the cache has.
    fn only_model(&self) -> Result<String, Error> {
        let Name { repository, revision, .. } = self.name;
        let cached = || self.folder.files(revision);
        let files = if self.hub.offline {
            cached()
        } else {
            match self.ask("the list", |client| client.list(repository, revision)) {
                Ok(files) => files,
                Err(error) => {
                    let cached = cached();
                    if cached.iter().any(|file| is_model(file)) { cached } else { return Err(error) }
                }
            }
        };
        let mut models: Vec<String> =
            files.into_iter().filter(|file| is_model(file) && name::is_plain(file)).collect();
        models.sort_unstable();
        match models.as_slice() {
            [one] => Ok(one.clone()),
            _ => Err(Error::Choice { repository: repository.clone(), files: models }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_means_yes_by_some_words() {
        assert!(["1", "ON", "on", "Yes", "TRUE"].into_iter().all(means_yes));
        assert!(!["0", "OFF", "off", "no", "FALSE", "2", "", " 1"].into_iter().any(means_yes));
    }
    #[test]
    fn a_token_is_not_printed() {
        let text = format!("{:?}", Hub::new("https://hub.example", "cache").token("hf_secret"));
        assert!(
            text.contains("hub.example") && text.contains("not shown") && !text.contains("secret"),
            "{text}"
        );
    }
}
