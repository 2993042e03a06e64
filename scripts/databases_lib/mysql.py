"""Our own MySQL server for tests and measurements: on loopback, durable, in one folder.

MySQL is not among the packages of Debian's stable releases, whose `mysqld` is MariaDB's.
"""

from .kin import Kin

SERVER = Kin(
    daemon="mysqld",
    client="mysql",
    where="MYSQL_BIN",
    advice="set MYSQL_BIN to the folder with mysqld and mysql of MySQL 8.0 or newer",
    settings={"innodb-redo-log-capacity": "512M", "mysqlx": "OFF", "secure-file-priv": "NULL",
              # A test raises errors through a non-transactional table, which GTID consistency would not allow.
              "gtid-mode": "OFF", "enforce-gtid-consistency": "OFF"},
    install=["mysqld", "--initialize-insecure"],
    root="ALTER USER root@localhost IDENTIFIED BY '{password}';\n",
)

up, down, running, database, tool = SERVER.up, SERVER.down, SERVER.running, SERVER.database, SERVER.tool
