//! Handshake between rank 0 and another rank, before the first task.
//!
//! Unknown hosts may connect to the port: a hello is short, must arrive within [`HELLO_TIMEOUT`],
//! and counts only with the right token.

use std::io::{self, Read};
use std::net::{IpAddr, TcpStream};
use std::time::{Duration, Instant};

use ring::digest::{SHA256, digest};
use rustix::net::sockopt;
use serde::{Deserialize, Serialize};

use apus_measure::error::{Doing, Error};
use apus_measure::process::Task;

/// Maximum length of a hello in bytes.
pub(super) const MAX_HELLO: usize = 4096;

/// Time limit for the arrival of a hello. Chosen by us: longer than any retransmission that still
/// succeeds.
pub(super) const HELLO_TIMEOUT: Duration = Duration::from_secs(10);

/// First line from a rank.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    /// Version of apus.
    pub(super) version: String,
    /// Secret of this job.
    pub(super) token: String,
    /// Index of this rank.
    pub(super) rank: u32,
    /// Number of ranks.
    pub(super) size: u32,
    /// Address of this rank, as reachable from the other ranks.
    pub(super) bind: IpAddr,
    /// Name of its host.
    pub(super) host: String,
}

/// Answer to a hello.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum HelloReply {
    /// The rank is accepted; tasks follow.
    Welcome,
    /// The rank is refused, with a reason.
    Refused(String),
}

/// Next message to an accepted rank.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Assignment {
    /// A task for a new agent. All further lines on this connection are between the parent and that
    /// agent.
    Task(Task),
    /// No more tasks.
    Dismiss,
}

/// Compares two tokens by their digests: the time shows nothing about the tokens.
pub(super) fn same_token(one: &str, other: &str) -> bool {
    digest(&SHA256, one.as_bytes()).as_ref() == digest(&SHA256, other.as_bytes()).as_ref()
}

/// Configures a connection: lines are sent without delay, and a dead connection is detected within
/// 20 s.
pub(super) fn prepare(stream: &TcpStream) -> Result<(), Error> {
    let all = || {
        sockopt::set_tcp_nodelay(stream, true)?;
        sockopt::set_socket_keepalive(stream, true)?;
        sockopt::set_tcp_keepidle(stream, Duration::from_secs(5))?;
        sockopt::set_tcp_keepintvl(stream, Duration::from_secs(5))?;
        sockopt::set_tcp_keepcnt(stream, 3)
    };
    all().doing(|| "prepare a connection between ranks".to_owned())
}

/// Reads a hello from an unknown host: one short line, within the time limit.
pub(super) fn read_hello(stream: &mut TcpStream) -> io::Result<Hello> {
    let bad = |problem: &str| io::Error::new(io::ErrorKind::InvalidData, problem.to_owned());
    let until = Instant::now() + HELLO_TIMEOUT;
    let mut text = Vec::new();
    while text.last() != Some(&b'\n') {
        // A timeout of 0 would mean no timeout.
        let left = until.saturating_duration_since(Instant::now());
        stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        let mut piece = [0; 512];
        match stream.read(&mut piece)? {
            0 => return Err(bad("closed the connection before its hello")),
            length => text.extend_from_slice(&piece[..length]),
        }
        if text.len() > MAX_HELLO || left.is_zero() {
            return Err(bad("sent a hello that is too long or too late"));
        }
    }
    stream.set_read_timeout(None)?;
    serde_json::from_slice(&text).map_err(|_| bad("is no rank of apus"))
}
