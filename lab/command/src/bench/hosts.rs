//! The hosts of a cluster: namespaces of this machine, hosts over ssh, or ranks of a launcher.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use apus_bench::cluster::{ClusterOptions, Venue};
use apus_testbed::launch::{Launch, Ranks, Role, Ssh, hosts};
use clap::{Args, ValueEnum};

use apus_command_line::failure::Failure;

/// The launcher of the nodes.
#[derive(Debug, Args)]
pub(super) struct Hosts {
    /// Launcher that provides the hosts
    #[arg(long, value_name = "HOW", default_value = "local")]
    launch: How,
    /// Host file for `--launch ssh`: one host per line, `[USER@]HOST[:PORT] [bind=ADDRESS]
    /// [program=PATH]`
    #[arg(long, value_name = "FILE")]
    hosts: Option<PathBuf>,
    /// Path of apus on hosts whose line has none [default: the path here]
    #[arg(long, value_name = "PATH")]
    program: Option<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum How {
    /// Namespaces of this machine, with a switch between them; as root, or where user namespaces
    /// are allowed
    Local,
    /// Hosts of a file, over ssh
    Ssh,
    /// This command was started on each host by srun, mpirun or Kubernetes, whose variables say
    /// which one this is
    Env,
}

impl Hosts {
    /// Serves the process that runs the experiment, if a launcher started this process for that
    /// purpose. Returns `false` otherwise.
    pub(super) fn serve(&self) -> Result<bool, Failure> {
        if self.launch != How::Env {
            return Ok(false);
        }
        let ranks = Ranks::here().map_err(|error| self.wrong(&error))?;
        if ranks.rank == 0 {
            return Ok(false);
        }
        match ranks.join(this_program()?)? {
            Role::Node(node) => node.serve()?,
            Role::Coordinator(_) => unreachable!("rank 0 has returned above"),
        }
        Ok(true)
    }

    /// Checks, before starting any process, that these arguments are consistent and that the
    /// options can be measured on these hosts.
    pub(super) fn check(&self, options: &ClusterOptions) -> Result<(), Failure> {
        let only_ssh = |argument: &str, given: bool| {
            let problem = "it is for --launch ssh only";
            if given && self.launch != How::Ssh { Err(wrong(argument, problem)) } else { Ok(()) }
        };
        only_ssh("--hosts", self.hosts.is_some())?;
        only_ssh("--program", self.program.is_some())?;
        if self.launch != How::Local {
            options.check_elsewhere()?;
        }
        Ok(())
    }

    /// Returns the hosts; `nodes` is the number of participating hosts, if specified.
    pub(super) fn venue(
        &self,
        nodes: Option<usize>,
        options: &mut ClusterOptions,
    ) -> Result<Venue, Failure> {
        let launch = match self.launch {
            How::Local => return Ok(Venue::fabric()?),
            How::Ssh => Launch::Ssh(self.visit()?),
            How::Env => self.lead()?,
        };
        if launch.nodes() < 2 {
            return Err(self.wrong(&"there is one host, and a cluster has two at least"));
        }
        options.fabric.nodes = nodes.unwrap_or_else(|| launch.nodes());
        Ok(Venue::Elsewhere { launch, words: self.words() })
    }

    fn visit(&self) -> Result<Ssh, Failure> {
        let Some(path) = &self.hosts else {
            return Err(self.wrong(&"ssh needs the hosts: add --hosts FILE, one host per line"));
        };
        let bad = |problem: &dyn ToString| {
            wrong("--hosts", &format!("{}: {}", path.display(), problem.to_string()))
        };
        let text = fs::read_to_string(path).map_err(|error| bad(&error))?;
        let hosts = hosts(&text).map_err(|error| bad(&error))?;
        let program = match &self.program {
            Some(program) => program.clone(),
            None => this_program()?.into(),
        };
        Ok(Ssh::check(&hosts, vec!["ssh".into()], &program)?)
    }

    /// Returns these arguments as words of a command line.
    fn words(&self) -> Vec<String> {
        let hosts = self.hosts.as_ref().map(|path| path.display().to_string());
        let program = self.program.as_ref().map(|path| path.display().to_string());
        let options =
            [("--launch", Some(self.launch_name())), ("--hosts", hosts), ("--program", program)];
        let given = options.into_iter().filter_map(|(name, value)| Some([name.to_owned(), value?]));
        given.flatten().collect()
    }

    fn launch_name(&self) -> String {
        let value = self.launch.to_possible_value().expect("none is skipped");
        value.get_name().to_owned()
    }

    /// Joins the processes started by a launcher, as rank 0.
    fn lead(&self) -> Result<Launch, Failure> {
        let ranks = Ranks::here().map_err(|error| self.wrong(&error))?;
        match ranks.join(this_program()?)? {
            Role::Coordinator(coordinator) => Ok(Launch::Ranks(coordinator)),
            Role::Node(_) => unreachable!("other ranks serve"),
        }
    }

    fn wrong(&self, problem: &dyn ToString) -> Failure {
        wrong(&format!("--launch {}", self.launch_name()), &problem.to_string())
    }
}

fn this_program() -> Result<PathBuf, Failure> {
    env::current_exe().map_err(|error| Failure::of("find this program", &error))
}

fn wrong(argument: &str, problem: &str) -> Failure {
    Failure::Argument { argument: argument.to_owned(), problem: problem.to_owned() }
}
