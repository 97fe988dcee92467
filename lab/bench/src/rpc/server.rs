//! The server's process: it prints its address, serves until its standard input ends, and prints
//! its counters.

use crate::error::Error;
use std::net::SocketAddr;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

/// Handle of the server's process in the client's process. Dropping it kills a running server.
pub(crate) struct ServerProcess {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    pub(crate) address: SocketAddr,
}

impl ServerProcess {
    /// Starts this program with these arguments.
    pub(crate) async fn start(arguments: &[String]) -> Result<Self, Error> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let output = child.stdout.take().ok_or("the server has no output")?;
        let mut lines = BufReader::new(output).lines();
        let line = lines.next_line().await?.ok_or("the server ended at once")?;
        let address = line.parse().map_err(|_| format!("the server printed {line:?}"))?;
        Ok(Self { child, lines, address })
    }

    /// Ends the server, and returns its last line of output.
    pub(crate) async fn end(mut self) -> Result<String, Error> {
        drop(self.child.stdin.take());
        let line = self.lines.next_line().await?.unwrap_or_default();
        self.child.wait().await?;
        Ok(line)
    }
}

/// In the server's process: prints the address.
pub(crate) fn announce(address: SocketAddr) {
    println!("{address}");
}

/// In the server's process: waits until its standard input ends.
pub(crate) async fn until_the_end() -> Result<(), Error> {
    let mut rest = Vec::new();
    tokio::io::stdin().read_to_end(&mut rest).await?;
    Ok(())
}
