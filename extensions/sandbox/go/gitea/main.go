// Gitea with a database driver in pure Go: its own needs a C compiler.
package main

import (
	"database/sql"
	"database/sql/driver"
	"os"

	"code.gitea.io/gitea/cmd"
	"code.gitea.io/gitea/modules/log"
	_ "code.gitea.io/gitea/modules/markup/markdown"
	"code.gitea.io/gitea/modules/setting"
	"modernc.org/sqlite"
)

const version = "1.26.2"

// patientDriver waits for a locked database. Gitea's own address sets the timeout by a parameter that only another driver has.
type patientDriver struct{ sqlite.Driver }

func (d *patientDriver) Open(name string) (driver.Conn, error) {
	return d.Driver.Open(name + "&_pragma=busy_timeout(20000)")
}

func main() {
	sql.Register("sqlite3", &patientDriver{})
	setting.EnableSQLite3 = true
	setting.SupportedDatabaseTypes = append(setting.SupportedDatabaseTypes, "sqlite3")
	setting.AppVer = version
	app := cmd.NewMainApp(cmd.AppVersion{Version: version})
	err := cmd.RunMainApp(app, os.Args...)
	log.GetManager().Close()
	if err != nil {
		os.Exit(1)
	}
}
