//! What does every rank but the first do?
//!
//! It comes to rank 0, waits, and hands the task that it gets to a new agent; all further lines go through
//! it. It comes again at once, since there may be another task beside that one, until it is dismissed. Each
//! task has a connection of its own.

use std::ffi::OsString;
use std::io::{self, BufReader};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::thread;
use std::time::{Duration, Instant};

use super::Ranks;
use super::greeting::{Answer, Assignment, GREETING_TIME, Greeting, LONGEST_GREETING, prepare};
use crate::error::{Doing, Error};
use crate::process::{LONGEST, read_line, relay, write_line};

/// How long a rank that served before looks for rank 0. Ours: it is there, unless its network is not.
const AGAIN: Duration = Duration::from_secs(10);

/// How long one attempt to connect may take, and the pause between two.
const ATTEMPT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(100);

/// A rank that has been welcomed.
#[derive(Debug)]
pub struct Node {
    ranks: Ranks,
    program: OsString,
    connection: BufReader<TcpStream>,
}

impl Node {
    /// Comes to rank 0 and says who it is.
    pub(super) fn join(ranks: Ranks, program: OsString) -> Result<Self, Error> {
        let connection = come(&ranks, ranks.patience, false)?;
        Ok(Self { ranks, program, connection })
    }

    /// Does what rank 0 says, until it is dismissed.
    ///
    /// # Errors
    ///
    /// Rank 0 is gone. What goes wrong in an agent is told to rank 0.
    pub fn serve(self) -> Result<(), Error> {
        let Self { ranks, program, mut connection } = self;
        // Tasks end with their connections, which do not outlive rank 0.
        thread::scope(|scope| {
            loop {
                // A connection that breaks ends as well.
                match read_line(&mut connection, LONGEST).unwrap_or_default() {
                    Some(Assignment::Task(task)) => {
                        let program = &program;
                        scope.spawn(move || relay(program, task, connection));
                    }
                    Some(Assignment::Dismiss) => return Ok(()),
                    None => {
                        let said = "came to an end without a word to the others".to_owned();
                        return Err(Error::Agent { agent: rank_0(&ranks), said });
                    }
                }
                connection = come(&ranks, AGAIN, true)?;
            }
        })
    }
}

fn rank_0(ranks: &Ranks) -> String {
    format!("rank 0 at {}", ranks.place())
}

/// A connection to rank 0 that has been welcomed. If it was there before, it has only gone once nobody
/// listens any more.
fn come(ranks: &Ranks, patience: Duration, again: bool) -> Result<BufReader<TcpStream>, Error> {
    let until = Instant::now() + patience;
    loop {
        let problem = match attempt(ranks) {
            Ok((connection, Answer::Welcome)) => {
                let unlimited = connection.get_ref().set_read_timeout(None);
                unlimited.doing(|| format!("wait for {}", rank_0(ranks)))?;
                return Ok(connection);
            }
            Ok((_, Answer::Refused(why))) => {
                let said = format!("refused this rank {}: {why}", ranks.rank);
                return Err(Error::Agent { agent: rank_0(ranks), said });
            }
            Err(problem) => problem,
        };
        let gone = again && problem.kind() == io::ErrorKind::ConnectionRefused;
        if gone || Instant::now() >= until {
            let said = format!(
                "does not answer rank {} ({problem}); does it run, and do names and firewalls let \
                 the ranks through? APUS_COORDINATOR=HOST:PORT says where it is",
                ranks.rank
            );
            return Err(Error::Agent { agent: rank_0(ranks), said });
        }
        thread::sleep(PAUSE);
    }
}

/// Tries all addresses of rank 0 once.
fn attempt(ranks: &Ranks) -> io::Result<(BufReader<TcpStream>, Answer)> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "its name has no address");
    for address in (ranks.coordinator.as_str(), ranks.port).to_socket_addrs()? {
        match greet(ranks, address) {
            Ok(greeted) => return Ok(greeted),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn greet(ranks: &Ranks, address: SocketAddr) -> io::Result<(BufReader<TcpStream>, Answer)> {
    let mut stream = TcpStream::connect_timeout(&address, ATTEMPT)?;
    prepare(&stream).map_err(io::Error::other)?;
    let greeting = Greeting {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        token: ranks.token.clone(),
        rank: ranks.rank,
        size: ranks.size,
        bind: match ranks.bind {
            Some(bind) => bind,
            None => local(&stream)?,
        },
        host: host_name(),
    };
    stream.set_read_timeout(Some(GREETING_TIME))?;
    write_line(&mut stream, &greeting)?;
    let mut lines = BufReader::new(stream);
    match read_line(&mut lines, LONGEST_GREETING as u64)? {
        Some(answer) => Ok((lines, answer)),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// The address of this end.
pub(super) fn local(stream: &TcpStream) -> io::Result<IpAddr> {
    Ok(stream.local_addr()?.ip().to_canonical())
}

/// This host's name, for messages.
pub(super) fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
