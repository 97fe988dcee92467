//! The HTTP exporter for Prometheus.

use super::text::{CONTENT_TYPE, text};
use crate::introspection::own_snapshot;
use crate::snapshot::Snapshot;
use apus_process::{ClosedInChildren, Owner};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE as TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::spawn_blocking;

/// Longest time until a request's head is complete. Chosen by us: scrapers send it at once.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Connections at a time; further ones wait. Chosen by us: there are few scrapers.
const CONNECTIONS: usize = 64;

/// Takes snapshots for a request.
type Source = Arc<dyn Fn() -> Vec<Snapshot> + Send + Sync>;

/// Serves counters at `/metrics` until it is dropped, in a thread that sleeps between requests.
#[derive(Debug)]
pub struct Exporter {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    owner: Owner,
}

impl Exporter {
    /// Serves the counters of this process's observable endpoints at `address`. Port 0 selects a
    /// free port.
    ///
    /// Every host that reaches the address can read the counters; 127.0.0.1 restricts them to this
    /// host.
    ///
    /// # Errors
    ///
    /// The address cannot be bound, or the system refuses a thread.
    pub fn start(address: SocketAddr) -> io::Result<Self> {
        Self::with_source(address, false, || vec![own_snapshot()])
    }

    /// Serves the snapshots that `source` returns for each request. With `by_process` each value
    /// has the labels `pid` and `program`.
    ///
    /// # Errors
    ///
    /// The address cannot be bound, or the system refuses a thread.
    pub fn with_source(
        address: SocketAddr,
        by_process: bool,
        source: impl Fn() -> Vec<Snapshot> + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let source: Source = Arc::new(source);
        let thread =
            thread::Builder::new().name("apus-prometheus".to_owned()).spawn(move || {
                runtime.block_on(async {
                    tokio::select! {
                        () = serve(listener, by_process, source) => {}
                        _ = stopped => {}
                    }
                });
            })?;
        Ok(Self { address, stop: Some(stop), thread: Some(thread), owner: Owner::current() })
    }

    /// Returns the address that it listens on.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        if !self.owner.is_current() {
            // A child of a fork has no such thread: it can neither end it nor detach it.
            std::mem::forget((self.stop.take(), self.thread.take()));
            return;
        }
        if let Some(stop) = self.stop.take() {
            // Fails if the thread has panicked.
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn serve(listener: std::net::TcpListener, by_process: bool, source: Source) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    // Dropped before the listener is closed.
    let _closed = ClosedInChildren::new(&listener);
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(permit) = room.clone().acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            // No descriptors: retry when some may have been closed.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let source = source.clone();
        tokio::spawn(async move {
            let service = service_fn(|request| {
                let source = source.clone();
                async move { Ok::<_, Infallible>(respond(&request, by_process, source).await) }
            });
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
            // An error concerns this connection alone.
            let _ = http.serve_connection(TokioIo::new(stream), service).await;
            drop(permit);
        });
    }
}

async fn respond(
    request: &Request<Incoming>,
    by_process: bool,
    source: Source,
) -> Response<Full<Bytes>> {
    let is_read = [Method::GET, Method::HEAD].contains(request.method());
    let (status, kind, body) = match request.uri().path() {
        _ if !is_read => (StatusCode::METHOD_NOT_ALLOWED, "text/plain", "GET only\n".to_owned()),
        "/metrics" => {
            // A source may wait for other processes; other scrapes do not wait for this one.
            match spawn_blocking(move || text(source(), by_process)).await {
                Ok(text) => (StatusCode::OK, CONTENT_TYPE, text),
                // The source has panicked, which has printed the cause.
                Err(_) => {
                    (StatusCode::INTERNAL_SERVER_ERROR, "text/plain", "no counters\n".to_owned())
                }
            }
        }
        "/" => (StatusCode::OK, "text/plain", "The counters of apus are at /metrics\n".to_owned()),
        _ => (StatusCode::NOT_FOUND, "text/plain", "There is only /metrics\n".to_owned()),
    };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(TYPE, hyper::header::HeaderValue::from_static(kind));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(ALLOW, hyper::header::HeaderValue::from_static("GET, HEAD"));
    }
    response
}
