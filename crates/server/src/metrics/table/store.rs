//! The database, the journal, and what is kept in memory.

use crate::metrics::declare::{Group, counter, gauge, histogram};
use crate::metrics::moment::Store;
use store::engine::Durability;

/// The database, the journal, and what is kept in memory.
pub static GROUP: Group = Group {
    about: "The database",
    metrics: &[
        gauge(
            "portiere_store_info",
            &["engine"],
            "1, for the database engine: sqlite, postgres, mysql.",
            |now, out| {
                out.of(&[now.store.engine()], 1);
            },
        ),
        gauge(
            "portiere_store_durability",
            &["class"],
            "1 for the current durability of an acknowledged write: zero_loss (zero-loss elsewhere: survives the loss of a node), \
             durable_node (durable elsewhere: survives if the disk does), bounded (bounded-loss elsewhere: a failure may \
             undo the last writes).",
            |now, out| {
                let class = |class| u8::from(now.durability == Some(class));
                out.of(&["zero_loss"], class(Durability::ZeroLoss));
                out.of(&["durable_node"], class(Durability::DurableNode));
                out.of(&["bounded"], class(Durability::Bounded));
            },
        ),
        counter(
            "portiere_store_batches_total",
            &["outcome"],
            "Batches of changes that use cases submitted: committed, conflict (data had changed, and the use case was \
             decided again), unavailable, unknown (nobody knows whether the batch was committed).",
            |now, out| out.each(now.from.app.tally.batches.sums()),
        ),
        histogram(
            "portiere_store_commit_duration_seconds",
            &[],
            "SQLite, MySQL: how long a COMMIT took, including the sync to the disk. PostgreSQL: how long a whole batch \
             took, from its turn on its connection.",
            |now, out| out.spread(&[], now.store.commit_times()),
        ),
        histogram("portiere_store_group_size", &[], "SQLite: batches that shared one COMMIT.", |now, out| {
            if let Store::File { stats, .. } = &now.store {
                out.spread(&[], &stats.group_sizes);
            }
        }),
        gauge(
            "portiere_store_waiting",
            &[],
            "SQLite: batches that wait for the writer or are being written. A server: reads and batches that wait for \
             a connection or are in flight.",
            |now, out| out.one(now.store.waiting().0),
        ),
        gauge("portiere_store_waiting_max", &[], "How many waiting reads and batches are too many.", |now, out| {
            out.one(now.store.waiting().1);
        }),
        gauge(
            "portiere_store_expected_wait_seconds",
            &[],
            "How long a batch that arrives now would wait: the number that wait, divided by how many go together, \
             times how long recent commits took. SQLite: at least as long as no commit has ended.",
            |now, out| out.one(now.from.strain.database_wait().as_secs_f64()),
        ),
        gauge("portiere_store_readers", &[], "SQLite: connections for short reads.", |now, out| {
            if let Store::File { readers, .. } = &now.store {
                out.one(readers.1);
            }
        }),
        gauge(
            "portiere_store_readers_in_use",
            &[],
            "SQLite: connections for short reads that are in use.",
            |now, out| {
                if let Store::File { readers, .. } = &now.store {
                    out.one(readers.0);
                }
            },
        ),
        counter(
            "portiere_store_long_reads_total",
            &[],
            "SQLite: reads that were too long for a network thread and went to one of their own.",
            |now, out| {
                if let Store::File { stats, .. } = &now.store {
                    out.one(stats.long_fetches);
                }
            },
        ),
        counter(
            "portiere_store_turned_away_total",
            &[],
            "SQLite: batches refused because too many waited.",
            |now, out| {
                if let Store::File { stats, .. } = &now.store {
                    out.one(stats.turned_away);
                }
            },
        ),
        gauge(
            "portiere_store_file_bytes",
            &["file"],
            "SQLite: size of the database file (database) and of its write-ahead log (log).",
            |now, out| {
                let files = now.looked.room.and_then(|room| room.files);
                files.iter().for_each(|files| out.each(["database", "log"].into_iter().zip(*files)));
            },
        ),
        gauge(
            "portiere_data_size_bytes",
            &[],
            "Size of the file system of the data folder; of that of SQLite's file, if less of it is free.",
            |now, out| {
                now.looked.room.iter().for_each(|room| out.one(room.size));
            },
        ),
        gauge(
            "portiere_data_free_bytes",
            &[],
            "Free space for users other than root in the file system of portiere_data_size_bytes.",
            |now, out| {
                now.looked.room.iter().for_each(|room| out.one(room.free));
            },
        ),
        gauge("portiere_store_wal_pages", &[], "SQLite: pages in the write-ahead log.", |now, out| {
            if let Store::File { stats, .. } = &now.store {
                out.one(stats.wal_pages);
            }
        }),
        counter(
            "portiere_store_checkpoints_total",
            &[],
            "SQLite: times that the write-ahead log was copied into the database file, beside writes or in place of \
             writes.",
            |now, out| {
                if let Store::File { stats, .. } = &now.store {
                    out.one(stats.checkpoints);
                }
            },
        ),
        histogram(
            "portiere_store_checkpoint_duration_seconds",
            &[],
            "SQLite: how long a checkpoint in place of writes took; nothing was committed meanwhile.",
            |now, out| {
                if let Store::File { stats, .. } = &now.store {
                    out.spread(&[], &stats.checkpoint_times);
                }
            },
        ),
        gauge("portiere_store_connections", &[], "A server: open connections to it.", |now, out| {
            now.store.usage().into_iter().for_each(|usage| out.one(usage.connected));
        }),
        gauge(
            "portiere_store_connections_max",
            &[],
            "A server: the most connections to it (store.connections).",
            |now, out| {
                now.store.usage().into_iter().for_each(|usage| out.one(usage.places));
            },
        ),
        counter(
            "portiere_store_connections_made_total",
            &[],
            "PostgreSQL: connections that were opened.",
            |now, out| {
                if let Store::Postgres(stats, _) = &now.store {
                    out.one(stats.connections);
                }
            },
        ),
        counter(
            "portiere_store_retries_total",
            &[],
            "A server: times that a batch was run again because the server had picked it as a deadlock victim or could \
             not serialize it.",
            |now, out| match &now.store {
                Store::File { .. } => {}
                Store::Postgres(stats, _) => out.one(stats.retried),
                Store::Mysql(stats, ..) => out.one(stats.retried),
            },
        ),
        counter(
            "portiere_store_moves_total",
            &[],
            "MySQL, MariaDB: times that the node switched to another server of store.url.",
            |now, out| {
                if let Store::Mysql(_, _, server) = &now.store {
                    out.one(server.moves);
                }
            },
        ),
        gauge(
            "portiere_journal_working",
            &[],
            "A server: 1 while this node can acknowledge writes: its journal can be written and the database is let \
             in.",
            |now, out| now.journal.into_iter().for_each(|works| out.one(u8::from(works))),
        ),
        histogram(
            "portiere_journal_duration_seconds",
            &[],
            "A server: time until what a commit ended was in this node's journal, including the queue and the sync to \
             this node's disk. A commit that ends something is acknowledged only after that.",
            |now, out| now.from.app.journal_times().iter().for_each(|times| out.spread(&[], times)),
        ),
        gauge(
            "portiere_fence_up",
            &[],
            "A server: 1 while what was issued before a failover is refused (portiere fence status).",
            |now, out| now.fence.iter().for_each(|fence| out.one(u8::from(fence.up))),
        ),
        gauge("portiere_fence_waiting_nodes", &[], "A server: nodes that the fence waits for.", |now, out| {
            now.fence.iter().for_each(|fence| out.one(fence.waiting().count()));
        }),
        gauge(
            "portiere_node_clock_skew_seconds",
            &["node"],
            "A server: how far, at least, the clock of another running node is ahead of this node's clock; below 0 if \
             it is behind, 0 if the difference is less than five seconds.",
            |now, out| {
                let skews = now.from.app.clock_skews();
                skews.iter().for_each(|(node, ahead)| out.of(&[node], *ahead as f64 / 1e3));
            },
        ),
        counter(
            "portiere_cache_hits_total",
            &["cache"],
            "Lookups that found a valid entry in memory: clients, keys, tokens (checked signatures), origins.",
            |now, out| out.each(now.from.app.tally.hits.sums()),
        ),
        counter("portiere_cache_misses_total", &["cache"], "Lookups that had to read or check anew.", |now, out| {
            out.each(now.from.app.tally.misses.sums())
        }),
    ],
};
