//! A directory that one host serves and another one mounts.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::harness::text;
use crate::hosts::Hosts;

/// The address of the server, at the first host.
const ADDRESS: &str = "10.77.0.1:4000";

/// A directory `served`, and `here`, the place to mount it. Dropped, it is mounted no more.
pub(crate) struct FileService<'a> {
    hosts: &'a Hosts,
    program: PathBuf,
    all: TempDir,
}

/// The server, which ends when this is dropped.
pub(crate) struct Server(Child);

impl<'a> FileService<'a> {
    pub(crate) fn new(hosts: &'a Hosts, program: PathBuf) -> Self {
        let service = Self { hosts, program, all: tempfile::tempdir().unwrap() };
        fs::create_dir(service.path("served")).unwrap();
        fs::create_dir(service.path("here")).unwrap();
        service
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.all.path().join(name)
    }

    /// `apus fs` with these words, at a host.
    fn command(&self, host: usize, words: &str) -> Command {
        self.hosts.command(host, &format!("{} fs {words}", self.program.display()))
    }

    /// Starts the server at the first host.
    pub(crate) fn serve(&self, options: &str) -> Server {
        let served = self.path("served");
        let words =
            format!("serve {} --listen {ADDRESS} --trust 10.77.0.0/24 {options}", served.display());
        let mut server = self.command(0, words.trim_end()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, format!("listening on {ADDRESS}\n"));
        Server(server)
    }

    /// Mounts it at the second host.
    pub(crate) fn mount(&self) {
        let words = format!("mount {ADDRESS} {} --daemon", self.path("here").display());
        let mounted = self.command(1, &words).output().unwrap();
        assert!(mounted.status.success(), "{}", text(&mounted.stderr));
    }

    pub(crate) fn umount(&self) {
        let words = format!("umount {}", self.path("here").display());
        assert!(self.command(1, &words).status().unwrap().success());
    }
}

impl Drop for FileService<'_> {
    fn drop(&mut self) {
        // Ends the mount even while its server is unreachable.
        let mut umount = Command::new(&self.program);
        umount.args(["fs", "umount", "--lazy"]).arg(self.path("here"));
        let _ = umount.stdin(Stdio::null()).output();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
