//! A small HTTP client for the measurement: it keeps one connection, and knows only bodies of known length.

use anyhow::{Context, bail};
use std::net::SocketAddr;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

pub(crate) struct Client {
    stream: BufReader<TcpStream>,
    host: SocketAddr,
}

impl Client {
    pub(crate) async fn connect(host: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(host).await?;
        stream.set_nodelay(true)?;
        Ok(Client { stream: BufReader::new(stream), host })
    }

    /// Sends a body and gives the answer's.
    ///
    /// # Errors
    /// If the connection fails or the server answers anything but 200.
    pub(crate) async fn post(&mut self, path: &str, body: &[u8]) -> anyhow::Result<Vec<u8>> {
        let head =
            format!("POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n\r\n", self.host, body.len());
        self.stream.get_mut().write_all(head.as_bytes()).await?;
        self.stream.get_mut().write_all(body).await?;
        let (mut status, mut length) = (String::new(), None);
        self.stream.read_line(&mut status).await?;
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line).await? == 0 {
                bail!("the server ended the connection");
            }
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            if name.eq_ignore_ascii_case("content-length") {
                length = Some(value.trim().parse().context("a length")?);
            }
        }
        let mut answer = vec![0; length.context("an answer without a length")?];
        self.stream.read_exact(&mut answer).await?;
        if status.split(' ').nth(1) != Some("200") {
            bail!("{}: {}", status.trim_end(), String::from_utf8_lossy(&answer));
        }
        Ok(answer)
    }
}
