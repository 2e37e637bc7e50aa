//! Connections of clients, each step of which has a limit of time: no client holds one, its memory or the server's end for
//! longer, whether it is slow, silent or means harm.
//!
//! | what a client may take its time for | limit |
//! |---|---|
//! | a request's head, and the pause before it | [`Limits::arrival`]; the connection is closed |
//! | a request's body | [`Limits::arrival`]; it is answered by 408, and the connection is closed |
//! | to take any more of an answer | [`Limits::arrival`]; the connection is closed |
//! | what was begun when the server stops | [`Limits::ending`]; the connections that are left are closed |

use axum::Router;
use axum::body::Bytes;
use axum::extract::{FromRequest as _, Request};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpListener;
use tokio::time::{Sleep, sleep, timeout};

/// How long clients may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// How long a client may take to send a head, to send a body, and to take more of an answer.
    pub(crate) arrival: Duration,
    /// How long requests that were begun may take when the server stops.
    pub(crate) ending: Duration,
}

/// Serves until `stop` is done, and then as long as requests are answered that had begun. Gives whether all of them were.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    stop: impl Future<Output = ()>,
) -> bool {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.arrival);
    let (open, mut stop) = (GracefulShutdown::new(), std::pin::pin!(stop));
    let (end, ended) = tokio::sync::watch::channel(());
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stop => break,
        };
        let Ok((stream, _)) = accepted else {
            // So it is where the process has too many files open: others are closed meanwhile.
            sleep(Duration::from_millis(50)).await;
            continue;
        };
        let stream = Taken { stream, limit: limits.arrival, waits: None };
        let service = TowerToHyperService::new(router.clone());
        let connection = open.watch(http.serve_connection(TokioIo::new(stream), service));
        let mut ended = ended.clone();
        tokio::spawn(async move {
            // A client that goes away, or is too slow, is no fault of the server's.
            tokio::select! {
                _ = connection => {}
                _ = ended.changed() => {}
            }
        });
    }
    drop(listener);
    let all = timeout(limits.ending, open.shutdown()).await.is_ok();
    drop(end);
    all
}

/// A request's body, if it arrives in time.
pub(crate) async fn body(request: Request, limit: Duration) -> Result<Bytes, Response> {
    match timeout(limit, Bytes::from_request(request, &())).await {
        Ok(body) => body.map_err(|rejection| rejection.into_response()),
        Err(_) => {
            let text = format!("the body did not arrive within {limit:?}\n");
            Err((StatusCode::REQUEST_TIMEOUT, [(header::CONNECTION, "close")], text).into_response())
        }
    }
}

/// A stream whose other side takes what it is sent: writing fails where it takes nothing for as long as the limit.
struct Taken<S> {
    stream: S,
    limit: Duration,
    waits: Option<Pin<Box<Sleep>>>,
}

impl<S: AsyncWrite + Unpin> Taken<S> {
    fn patiently<T>(
        &mut self,
        context: &mut Context<'_>,
        act: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let done = act(Pin::new(&mut self.stream), context);
        if done.is_ready() {
            self.waits = None;
            return done;
        }
        let waits = self.waits.get_or_insert_with(|| Box::pin(sleep(self.limit)));
        ready!(waits.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Taken<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.patiently(context, |stream, context| stream.poll_write(context, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.patiently(context, |stream, context| stream.poll_write_vectored(context, bytes))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.patiently(context, |stream, context| stream.poll_flush(context))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.patiently(context, |stream, context| stream.poll_shutdown(context))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Taken<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::extract::DefaultBodyLimit;
    use axum::routing::{get, post};
    use std::net::SocketAddr;
    use std::time::Instant;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;
    use tokio::sync::oneshot;
    use tokio::task::JoinHandle;

    const ARRIVAL: Duration = Duration::from_millis(400);
    const ENDING: Duration = Duration::from_millis(800);
    /// More than any limit, and less than for ever.
    const LONG: Duration = Duration::from_secs(20);

    struct Server {
        address: SocketAddr,
        stop: oneshot::Sender<()>,
        serving: JoinHandle<bool>,
    }

    impl Server {
        async fn start() -> Self {
            let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
            let address = listener.local_addr().expect("an address");
            let length = |request: Request| async {
                body(request, ARRIVAL).await.map(|body| format!("{} bytes", body.len()))
            };
            let slow = || async {
                sleep(ARRIVAL / 2).await;
                "done"
            };
            let router = Router::new()
                .route("/length", post(length))
                .route("/slow", get(slow))
                .route("/never", get(|| async { sleep(LONG).await }))
                .route("/large", get(|| async { vec![7u8; 64 << 20] }))
                .layer(DefaultBodyLimit::max(100));
            let (stop, stopped) = oneshot::channel();
            let limits = Limits { arrival: ARRIVAL, ending: ENDING };
            let stopped = async { drop(stopped.await) };
            Server { address, stop, serving: tokio::spawn(serve(listener, router, limits, stopped)) }
        }

        /// A client that has sent so much.
        async fn client(&self, sent: &str) -> TcpStream {
            let mut stream = TcpStream::connect(self.address).await.expect("a connection");
            stream.write_all(sent.as_bytes()).await.expect("sent");
            stream
        }

        /// Whether all requests were answered, and how long the end took.
        async fn stop(self) -> (bool, Duration) {
            let begin = Instant::now();
            self.stop.send(()).expect("a server that runs");
            let all = timeout(LONG, self.serving).await.expect("an end").expect("no panic");
            (all, begin.elapsed())
        }
    }

    /// What comes until the server closes the connection, and after how long.
    async fn rest(mut stream: TcpStream) -> (String, Duration) {
        let (mut all, begin) = (Vec::new(), Instant::now());
        let read = timeout(LONG, stream.read_to_end(&mut all)).await.expect("the server closes it");
        // What the client still sends may make it a reset.
        let _ = read;
        (String::from_utf8_lossy(&all).into_owned(), begin.elapsed())
    }

    fn post_head(bytes: usize) -> String {
        format!("POST /length HTTP/1.1\r\nHost: x\r\nContent-Length: {bytes}\r\n\r\n")
    }

    #[tokio::test]
    async fn half_a_body_is_answered_and_its_connection_closed() {
        let server = Server::start().await;
        let half = server.client(&format!("{}0123", post_head(10))).await;
        let none = server.client(&post_head(10)).await;
        for stream in [half, none] {
            let (answer, time) = rest(stream).await;
            assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
            assert!(answer.ends_with("the body did not arrive within 400ms\n"), "{answer}");
            assert!(time < 10 * ARRIVAL, "{time:?}");
        }
        assert!(server.stop().await.0);
    }

    #[tokio::test]
    async fn a_body_that_drips_is_not_waited_for() {
        let server = Server::start().await;
        let mut drips = server.client(&post_head(100)).await;
        let begin = Instant::now();
        // Each byte comes in time, all of them do not.
        while begin.elapsed() < 3 * ARRIVAL && drips.write_all(b"x").await.is_ok() {
            sleep(ARRIVAL / 10).await;
        }
        let (answer, time) = rest(drips).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408 "), "{answer}");
        assert!(time < ARRIVAL, "it was closed meanwhile");
        assert!(server.stop().await.0);
    }

    #[tokio::test]
    async fn a_head_that_does_not_come_is_not_waited_for() {
        let server = Server::start().await;
        let silent = server.client("").await;
        let half = server.client("POST /length HTTP/1.1\r\nHo").await;
        let idle = server.client(&format!("{}0123456789", post_head(10))).await;
        for (stream, wanted) in [(silent, ""), (half, ""), (idle, "10 bytes")] {
            let (answer, time) = rest(stream).await;
            assert!(answer.ends_with(wanted) && time < 10 * ARRIVAL, "{answer} after {time:?}");
        }
        assert!(server.stop().await.0);
    }

    #[tokio::test]
    async fn an_answer_that_nobody_takes_is_given_up() {
        let server = Server::start().await;
        let client = server.client("GET /large HTTP/1.1\r\nHost: x\r\n\r\n").await;
        sleep(4 * ARRIVAL).await;
        let (answer, _) = rest(client).await;
        assert!(answer.len() < 64 << 20, "the whole answer came");
        assert!(server.stop().await.0);
    }

    #[tokio::test]
    async fn those_who_are_in_time_are_answered() {
        let server = Server::start().await;
        let _silent = server.client("").await;
        let _half = server.client(&format!("{}0", post_head(10))).await;
        let mut slow = server.client(&post_head(10)).await;
        for _ in 0..10 {
            sleep(ARRIVAL / 20).await;
            slow.write_all(b"x").await.expect("sent");
        }
        let (answer, _) = rest(slow).await;
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("10 bytes"), "{answer}");
        let (answer, _) = rest(server.client(&format!("{}{}", post_head(101), "x".repeat(101))).await).await;
        assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
        assert!(server.stop().await.0);
    }

    #[tokio::test]
    async fn the_end_waits_for_what_was_begun_and_for_nobody_else() {
        let server = Server::start().await;
        let _silent = server.client("").await;
        let _head = server.client("POST /length HTTP/1.1\r\nHo").await;
        let _half = server.client(&format!("{}0", post_head(10))).await;
        let slow = server.client("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n").await;
        sleep(ARRIVAL / 4).await;
        let address = server.address;
        let (all, time) = server.stop().await;
        assert!(all && time < 10 * ARRIVAL, "{all} after {time:?}");
        assert!(rest(slow).await.0.ends_with("done"));
        assert!(TcpStream::connect(address).await.is_err(), "no more connections are taken");
    }

    #[tokio::test]
    async fn the_end_comes_though_a_request_does_not_end() {
        let server = Server::start().await;
        let never = server.client("GET /never HTTP/1.1\r\nHost: x\r\n\r\n").await;
        sleep(ARRIVAL / 4).await;
        let (all, time) = server.stop().await;
        assert!(!all && time >= ENDING && time < 10 * ENDING, "{all} after {time:?}");
        let (answer, _) = rest(never).await;
        assert!(answer.is_empty(), "{answer}");
    }
}
