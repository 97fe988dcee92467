//! What is recorded of what a command does?

use std::path::PathBuf;

use apus::trace::{self, Sampling};
use clap::Args;

use crate::failure::Failure;

/// Time traces of a command that has endpoints.
#[derive(Debug, Args)]
pub(crate) struct Tracing {
    /// What to record in time traces: `off`, `sampled` (one RPC in 256), `sampled=PERIOD` (one in so many), or
    /// `all`
    #[arg(long = "trace", value_name = "WHAT", default_value_t = Sampling::default())]
    trace_sampling: Sampling,
    /// Write the time trace to this file in the end: the last 16 thousand things that each thread did
    #[arg(long = "trace-file", value_name = "FILE")]
    trace_file: Option<PathBuf>,
}

impl Tracing {
    /// Records from now on. To be asked before there is an endpoint.
    pub(crate) fn begin(&self) -> Result<(), Failure> {
        if self.trace_file.is_some() && self.trace_sampling == Sampling::Off {
            let problem = "nothing is recorded with --trace off; try --trace all".to_owned();
            return Err(Failure::Argument { argument: "--trace-file".to_owned(), problem });
        }
        trace::set_sampling(self.trace_sampling);
        Ok(())
    }

    /// Writes the file, if one was asked for.
    pub(crate) fn end(&self) -> Result<(), Failure> {
        let Some(file) = &self.trace_file else { return Ok(()) };
        trace::freeze(trace::FreezeReason::Demand);
        trace::dump_to(file).map_err(|error| Failure::of("write the trace", &error))
    }
}
