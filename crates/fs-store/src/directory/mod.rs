//! A directory of the server's file system, and the log that makes changes to it durable and repeatable.
