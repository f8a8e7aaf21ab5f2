PRAGMA application_id = 1952672817;
BEGIN TRANSACTION;
CREATE TABLE block_results (
        digest TEXT PRIMARY KEY,
        kernel TEXT NOT NULL,
        source_hash TEXT NOT NULL,
        launch TEXT NOT NULL,
        device TEXT NOT NULL,
        result TEXT NOT NULL,
        created REAL NOT NULL
    );
CREATE TABLE first_uses (
        digest TEXT NOT NULL,
        mode TEXT NOT NULL,
        winner TEXT,
        message TEXT NOT NULL,
        created REAL NOT NULL,
        PRIMARY KEY (digest, mode)
    );
INSERT INTO "first_uses" VALUES('17f07f239393ba49c4106876d647f14d0e34e566859203b8a81202a5979bc695','naive',NULL,'nothing works',0.0);
CREATE TABLE migrations (version INTEGER PRIMARY KEY, applied REAL NOT NULL);
INSERT INTO "migrations" VALUES(1,1.79524511613596630095e+09);
INSERT INTO "migrations" VALUES(2,1.79525348242312645912e+09);
INSERT INTO "migrations" VALUES(3,0.0);
INSERT INTO "migrations" VALUES(4,0.0);
INSERT INTO "migrations" VALUES(5,0.0);
INSERT INTO "migrations" VALUES(6,0.0);
CREATE TABLE problems (
        id INTEGER PRIMARY KEY,
        digest TEXT NOT NULL UNIQUE,
        definition_hash TEXT NOT NULL,
        definition TEXT NOT NULL,
        entry TEXT NOT NULL,
        backend TEXT NOT NULL,
        inputs TEXT NOT NULL,
        device TEXT NOT NULL,
        codegen_version TEXT NOT NULL,
        created REAL NOT NULL
    );
INSERT INTO "problems" VALUES(1,'17f07f239393ba49c4106876d647f14d0e34e566859203b8a81202a5979bc695','b9df80c452be640aeb175af33e573c5b80b954a735b13c320c3e429cf06b076b','canonical 1
in float32 t0 rank 1
','copy','cpu','[[[128], [4], "float32"]]','a processor; 2 threads','13',1760000000.5);
CREATE TABLE results (
        id INTEGER PRIMARY KEY,
        problem INTEGER NOT NULL REFERENCES problems (id),
        options TEXT NOT NULL,
        verdict TEXT NOT NULL,
        time REAL,
        samples TEXT NOT NULL,
        message TEXT NOT NULL,
        created REAL NOT NULL,
        run TEXT NOT NULL
    , heat INTEGER, place INTEGER, generation INTEGER, conditions TEXT, placed TEXT);
INSERT INTO "results" VALUES(1,1,'{"nests":[{"tile":[32]}],"preset":"mlp"}','correct',2.5e-06,'[3e-06, 2e-06, 2.5e-06]','',1760000000.75,'r1',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "results" VALUES(2,1,'{"nests":[{"tile":[64]}],"preset":"mlp"}','correct',1.5e-06,'[2e-06, 1e-06, 1.5e-06]','',1760000001.25,'r1',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "results" VALUES(3,1,'{"nests":[{"tile":[7]}],"preset":"mlp"}','constraints',NULL,'[]','tile: no',1760000001.75,'r1',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "results" VALUES(4,1,'{"nests":[{"tile":[32]}],"preset":"mlp"}','correct',1.0e-06,'[1e-06, 1e-06, 1.1e-06]','in the finals',1760000002.25,'r1',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "results" VALUES(5,1,'{"nests":[{"tile":[64]}],"preset":"mlp"}','correct',1.5e-06,'[1.5e-06, 1.4e-06, 1.5e-06]','in the finals',1760000002.75,'r1',NULL,NULL,NULL,NULL,NULL);
CREATE TABLE runs (
        run TEXT PRIMARY KEY,
        problem INTEGER NOT NULL REFERENCES problems (id),
        config TEXT NOT NULL,
        state TEXT NOT NULL,
        started REAL NOT NULL,
        updated REAL NOT NULL
    );
INSERT INTO "runs" VALUES('r1',1,'{"seed": 1}','{"generation": 2}',1760000000.25,1760000000.25);
CREATE INDEX problems_by_definition ON problems (definition_hash);
CREATE INDEX results_by_problem ON results (problem, time);
CREATE INDEX results_by_run ON results (run);
CREATE INDEX runs_by_problem ON runs (problem, started);
COMMIT;
