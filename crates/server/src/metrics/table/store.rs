//! The database, the journal, and what is kept in memory.

use crate::metrics::declare::{Group, counter, gauge, histogram};
use crate::metrics::moment::Store;
use store::engine::Durability;

/// The database, the journal, and what is kept in memory.
pub static GROUP: Group = Group {
    about: "The database",
    metrics: &[
        gauge("portiere_store_info", &["engine"], "1, for the engine: sqlite, postgres, mysql.", |now, out| {
            out.of(&[now.store.engine()], 1);
        }),
        gauge(
            "portiere_store_durability",
            &["class"],
            "1 for what an acknowledged write is worth now: zero_loss over the loss of a node, durable_node while the disk \
             survives, bounded where a failure may undo the last ones.",
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
            "Batches of changes that use cases handed over: committed, conflict (facts had changed; it was decided again), \
             unavailable, unknown (nobody knows whether it stands).",
            |now, out| out.each(now.from.app.tally.batches.sums()),
        ),
        histogram(
            "portiere_store_commit_duration_seconds",
            &[],
            "SQLite, MySQL: how long a COMMIT took, the sync to the disk included. PostgreSQL: a whole batch, from its turn on \
             its connection.",
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
            "SQLite: batches that wait for the writer or are being written. A server: reads and batches that wait for a \
             connection or are under way.",
            |now, out| out.one(now.store.waiting().0),
        ),
        gauge("portiere_store_waiting_max", &[], "When so many wait it is too many.", |now, out| {
            out.one(now.store.waiting().1);
        }),
        gauge(
            "portiere_store_expected_wait_seconds",
            &[],
            "How long a batch that came now would wait: what waits, by how many go together, times how long commits took \
             lately; SQLite: at least as long as none has come to its end.",
            |now, out| out.one(now.from.strain.database_wait().as_secs_f64()),
        ),
        gauge("portiere_store_readers", &[], "SQLite: connections for short reads.", |now, out| {
            if let Store::File { readers, .. } = &now.store {
                out.one(readers.1);
            }
        }),
        gauge("portiere_store_readers_in_use", &[], "SQLite: of these, the ones in use.", |now, out| {
            if let Store::File { readers, .. } = &now.store {
                out.one(readers.0);
            }
        }),
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
            "SQLite: the length of its file (database) and of its write-ahead log (log).",
            |now, out| {
                let files = now.looked.room.and_then(|room| room.files);
                files.iter().for_each(|files| out.each(["database", "log"].into_iter().zip(*files)));
            },
        ),
        gauge("portiere_data_size_bytes", &[], "The size of the file system of the data folder.", |now, out| {
            now.looked.room.iter().for_each(|room| out.one(room.size));
        }),
        gauge(
            "portiere_data_free_bytes",
            &[],
            "What is free of the file system of the data folder, for whoever is not root.",
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
            "SQLite: times that the log was copied into the file, beside what is written or in its place.",
            |now, out| {
                if let Store::File { stats, .. } = &now.store {
                    out.one(stats.checkpoints);
                }
            },
        ),
        histogram(
            "portiere_store_checkpoint_duration_seconds",
            &[],
            "SQLite: how long that took where it was in the place of what is written: nothing was committed meanwhile.",
            |now, out| {
                if let Store::File { stats, .. } = &now.store {
                    out.spread(&[], &stats.checkpoint_times);
                }
            },
        ),
        gauge("portiere_store_connections", &[], "A server: connections to it that are there.", |now, out| {
            now.store.usage().into_iter().for_each(|usage| out.one(usage.connected));
        }),
        gauge("portiere_store_connections_max", &[], "A server: the most of them (store.connections).", |now, out| {
            now.store.usage().into_iter().for_each(|usage| out.one(usage.places));
        }),
        counter("portiere_store_connections_made_total", &[], "PostgreSQL: connections that were made.", |now, out| {
            if let Store::Postgres(stats, _) = &now.store {
                out.one(stats.connections);
            }
        }),
        counter(
            "portiere_store_retries_total",
            &[],
            "A server: times that a batch was run again, because the server had picked it as the victim of a deadlock or \
             could not serialize it.",
            |now, out| match &now.store {
                Store::File { .. } => {}
                Store::Postgres(stats, _) => out.one(stats.retried),
                Store::Mysql(stats, ..) => out.one(stats.retried),
            },
        ),
        counter(
            "portiere_store_moves_total",
            &[],
            "MySQL, MariaDB: how often another server of store.url was taken.",
            |now, out| {
                if let Store::Mysql(_, _, server) = &now.store {
                    out.one(server.moves);
                }
            },
        ),
        gauge(
            "portiere_journal_working",
            &[],
            "A server: 1 while this node can acknowledge writes: its journal can be written and the database is let in.",
            |now, out| now.journal.into_iter().for_each(|works| out.one(u8::from(works))),
        ),
        histogram(
            "portiere_journal_duration_seconds",
            &[],
            "A server: how long it took until what a commit ended was in this node's journal, its queue and the sync to this node's \
             disk included. No commit that ends something is acknowledged before.",
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
            "A server: by how much the clock of another node that runs is ahead of this one's at least, below 0 where it is behind; 0 \
             for less than five seconds.",
            |now, out| {
                let skews = now.from.app.clock_skews();
                skews.iter().for_each(|(node, ahead)| out.of(&[node], *ahead as f64 / 1e3));
            },
        ),
        counter(
            "portiere_cache_hits_total",
            &["cache"],
            "What was asked for and was in memory, valid: clients, keys, tokens (checked signatures), origins.",
            |now, out| out.each(now.from.app.tally.hits.sums()),
        ),
        counter(
            "portiere_cache_misses_total",
            &["cache"],
            "What was asked for and had to be read or checked anew.",
            |now, out| out.each(now.from.app.tally.misses.sums()),
        ),
    ],
};
