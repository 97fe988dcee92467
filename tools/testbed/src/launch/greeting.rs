//! What do the first rank and the others say to each other before a task?
//!
//! Whatever may come to a port that others can reach: a greeting is short, has to be there in time, and
//! counts only with the right token.

use std::io::{self, Read};
use std::net::{IpAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::net::sockopt;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::{Doing, Error};
use crate::process::Task;

/// The longest greeting in bytes.
pub(super) const LONGEST_GREETING: usize = 4096;

/// How long a greeting may take. Ours: longer than any retransmission that still helps.
pub(super) const GREETING_TIME: Duration = Duration::from_secs(10);

/// What a rank says first.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Greeting {
    /// The version of apus.
    pub(super) version: String,
    /// What only processes of this job know.
    pub(super) token: String,
    /// Which one it is.
    pub(super) rank: u32,
    /// Of how many.
    pub(super) size: u32,
    /// Where the others reach it.
    pub(super) bind: IpAddr,
    /// Its host's name.
    pub(super) host: String,
}

/// What a rank is answered.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    /// There will be tasks.
    Welcome,
    /// It does not belong here.
    Refused(String),
}

/// What a rank that is welcome hears next.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Assignment {
    /// To be handed to an agent; everything else on this connection is between the two.
    Task(Task),
    /// There will be no more.
    Dismiss,
}

/// Whether two tokens are the same. How long it takes says nothing about where they differ.
pub(super) fn same_token(one: &str, other: &str) -> bool {
    Sha256::digest(one) == Sha256::digest(other)
}

/// Prepares a connection: lines leave at once, and an end that nobody announces is noticed.
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

/// Reads the greeting of somebody unknown: one short line, within the time.
pub(super) fn read_greeting(stream: &mut TcpStream) -> io::Result<Greeting> {
    let bad = |problem: &str| io::Error::new(io::ErrorKind::InvalidData, problem.to_owned());
    let until = Instant::now() + GREETING_TIME;
    let mut text = Vec::new();
    while text.last() != Some(&b'\n') {
        // A timeout of 0 would be none.
        let left = until.saturating_duration_since(Instant::now());
        stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        let mut piece = [0; 512];
        match stream.read(&mut piece)? {
            0 => return Err(bad("left before it said who it is")),
            length => text.extend_from_slice(&piece[..length]),
        }
        if text.len() > LONGEST_GREETING || left.is_zero() {
            return Err(bad("said too much or too little"));
        }
    }
    stream.set_read_timeout(None)?;
    serde_json::from_slice(&text).map_err(|_| bad("is no rank of apus"))
}
