"""Our own MariaDB server for tests and measurements: on loopback, durable, in one folder."""

from .kin import Kin

SERVER = Kin(
    daemon="mariadbd",
    client="mariadb",
    where="MARIADB_BIN",
    advice="apt-get install mariadb-server",
    settings={"innodb-log-file-size": "256M"},
    install=["mariadb-install-db", "--skip-test-db", "--auth-root-authentication-method=normal"],
    root="DROP USER IF EXISTS root@'127.0.0.1', root@'::1';\n"
    "CREATE OR REPLACE USER root@localhost IDENTIFIED BY '{password}';\n"
    "GRANT ALL ON *.* TO root@localhost WITH GRANT OPTION;\n",
)

up, down, running, database, tool = SERVER.up, SERVER.down, SERVER.running, SERVER.database, SERVER.tool
