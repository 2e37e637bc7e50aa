//! A cluster of processes on this machine, which end when it is dropped.

use anyhow::{Context as _, Result, bail};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::process::{Child, Command};

/// How long a process may take until it listens.
const START: Duration = Duration::from_secs(120);

/// A scheduler and executors.
#[derive(Debug)]
pub struct Cluster {
    program: PathBuf,
    folder: PathBuf,
    words: Vec<String>,
    port: u16,
    executors: Vec<Child>,
    _scheduler: Child,
}

impl Cluster {
    /// Starts a scheduler and an executor for each device, with further `words` for the executors. Results and
    /// logs go to `folder`.
    pub async fn start(program: &Path, folder: &Path, devices: &[String], words: &[String]) -> Result<Self> {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let port = free_port()?;
        let listen = format!("127.0.0.1:{port}");
        let arguments = ["scheduler", "--listen", &listen, "--external-host", "127.0.0.1"];
        let timeout = ["--executor-timeout", "8"];
        let words_of_scheduler = arguments.iter().chain(&timeout).map(|&word| word.to_owned()).collect();
        let mut scheduler = spawn(program, folder, "scheduler", words_of_scheduler)?;
        listening(&mut scheduler, port).await.context("the scheduler")?;
        let mut cluster = Cluster {
            program: program.to_owned(),
            folder: folder.to_owned(),
            words: words.to_owned(),
            port,
            executors: Vec::new(),
            _scheduler: scheduler,
        };
        for device in devices {
            cluster.add(device).await?;
        }
        Ok(cluster)
    }

    /// One more executor.
    pub async fn add(&mut self, device: &str) -> Result<()> {
        let port = free_port()?;
        let work_dir = self.work_dir(self.executors.len());
        let arguments = [
            ("--scheduler", format!("127.0.0.1:{}", self.port)),
            ("--external-host", "127.0.0.1".to_owned()),
            ("--port", port.to_string()),
            ("--work-dir", work_dir.display().to_string()),
            ("--device", device.to_owned()),
        ];
        let arguments = arguments.into_iter().flat_map(|(name, value)| [name.to_owned(), value]);
        let words = std::iter::once("executor".to_owned()).chain(arguments).chain(self.words.iter().cloned());
        let name = format!("executor-{}", self.executors.len());
        let mut executor = spawn(&self.program, &self.folder, &name, words.collect())?;
        listening(&mut executor, port).await.with_context(|| format!("the executor on {device}"))?;
        self.executors.push(executor);
        Ok(())
    }

    /// Where clients find it.
    pub fn url(&self) -> String {
        format!("df://127.0.0.1:{}", self.port)
    }

    /// Where an executor keeps its results: `JOB/STAGE/...`.
    pub fn work_dir(&self, executor: usize) -> PathBuf {
        self.folder.join(format!("work-{executor}"))
    }

    /// Ends an executor with SIGKILL.
    pub async fn kill(&mut self, executor: usize) -> Result<()> {
        let child = self.executors.get_mut(executor).context("no such executor")?;
        child.kill().await.context("an executor that was to be killed")
    }
}

fn spawn(program: &Path, folder: &Path, name: &str, words: Vec<String>) -> Result<Child> {
    let log = std::fs::File::create(folder.join(format!("{name}.log")))?;
    let (out, err) = (log.try_clone()?, log);
    let child = Command::new(program).args(words).stdout(out).stderr(err).kill_on_drop(true).spawn();
    child.with_context(|| format!("cannot start {}", program.display()))
}

/// A port that nobody listens on.
fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port is free")?;
    Ok(listener.local_addr()?.port())
}

/// Waits until a process listens on its port.
async fn listening(child: &mut Child, port: u16) -> Result<()> {
    let (start, address) = (Instant::now(), SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    while tokio::net::TcpStream::connect(address).await.is_err() {
        if let Some(status) = child.try_wait()? {
            bail!("it ended before it listened on port {port}: {status}");
        }
        if start.elapsed() > START {
            bail!("it does not listen on port {port} after {} s", START.as_secs());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}
