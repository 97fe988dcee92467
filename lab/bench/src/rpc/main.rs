//! `apus-bench-rpc`: typed services and tonic over apus, compared with tonic over HTTP/2 and tarpc.
//! `apus-lab bench rpc` starts it.
//!
//! It is a separate program, so that building `apus` does not require the other sides. Client and
//! server are separate processes, each with a single-threaded runtime; all traffic uses loopback,
//! apus over UDP as between hosts.
//!
//! ```text
//!   options     selection and duration of measurements
//!   contender   the contenders: the server and the call of each
//!   server      the server's process, and its handle in the client's process
//!   load        calls one at a time, and many outstanding
//!   calls       the experiment `rpc`: latency and rate of each contender
//!   hedging     the experiment `rpc-hedging`: servers that stall at random
//! ```

#![forbid(unsafe_code)]

mod calls;
mod contender;
#[path = "generated/echo.rs"]
#[allow(missing_docs, unreachable_pub, unused_qualifications, clippy::all, clippy::pedantic)]
mod echo;
mod error;
mod hedging;
mod load;
mod options;
mod server;
mod sides;

use clap::Parser;
use error::Error;
use options::{RpcCommand, RpcOptions};
use std::process::ExitCode;

fn main() -> ExitCode {
    let options = RpcOptions::parse();
    if let Err(message) = options.check() {
        eprintln!("error: {message}");
        return ExitCode::from(2);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let done = runtime.map_err(Error::from).and_then(|runtime| {
        runtime.block_on(async {
            match &options.command {
                Some(RpcCommand::Serve { contender }) => sides::serve(*contender).await,
                Some(RpcCommand::ServeStalling { seed, percent }) => {
                    hedging::serve(*seed, *percent).await
                }
                None if options.hedging => options.show(&hedging::run(&options).await?),
                None => options.show(&calls::run(&options).await?),
            }
        })
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
