CREATE TABLE assertions (realm text NOT NULL, client_id text NOT NULL, jti blob NOT NULL,
            expires bigint NOT NULL, PRIMARY KEY (realm, client_id, jti)) WITHOUT ROWID;
CREATE TABLE audit_blocks (realm text NOT NULL, number bigint NOT NULL, first_line bigint NOT NULL,
            last_line bigint NOT NULL, oldest bigint NOT NULL, newest bigint NOT NULL, sealed_at bigint NOT NULL,
            key_id text NOT NULL, digest blob NOT NULL, leaves blob NOT NULL, mac_before blob NOT NULL,
            mac blob NOT NULL, PRIMARY KEY (realm, number)) WITHOUT ROWID;
INSERT INTO "audit_blocks" VALUES('main',1,1,5,1795892303714,1795892303719,1795892303758,'ee9b1650f1e7070d',X'46CEFBDFD6D828526DD594072389941D91EC6171387FAA1725079C966B69F546',X'1A30316B38686F626C7232657239376F726661656D6B616D686274A76691A9239FA91913662CBF071A0F6E1A30316B38686F626C72326A6C663061336B733769686B6D75363705C81533494116200C66C90D29F295351A30316B38686F626C72327669617033306C3336376368646D35712ADDAA8ED4966B9D838B37B137FB64AD1A30316B38686F626C723631736B6C646C6C746639626D76726C72866168BC2034FD5BAFAD3897A3C3080B1A30316B38686F626C723775627268306D396E3135307134766A74CEDA937C43C9C8E1D0B320F64DE4BB65',X'0000000000000000000000000000000000000000000000000000000000000000',X'C017E84B999FEB43EF1CD558BF5A084A498A141E6FBB50FC57E36580207DF48E');
INSERT INTO "audit_blocks" VALUES('main',2,6,14,1795892304069,1795892304785,1795892304803,'ee9b1650f1e7070d',X'AB93EA425B160ED13D11BF15F03B7C1C93FEA58E76C2164BE53D6423361BEE1B',X'1A30316B38686F626D3635346735747072376E737062343664706E94DFC681D6880C89DF6C8951F4D082981A30316B38686F626D366B6B61673965656A71343665676F616F75491EFC80E6BBD88E6D029AC085C63C3A1A30316B38686F626D623634706139353032667539323963653963044F4A48109F16D9DF3953B8B5FC55EE1A30316B38686F626D6C6B6871356738686873676B306E766133757E67369501761F85B471C8B388889CA51A30316B38686F626D6E357265737575366F68636B67386B316C6AFA228B51E7F72064CE321C722B2E803A1A30316B38686F626D6F747371316635373230716530617039736F4942A8D05F46A14BB2A15DF03266EC8B1A30316B38686F626D706B6673716F68337036676F70663076706C1A518F891257C5A4F45FF99129962EA61A30316B38686F626D72616F666B753164726D3233766C37696268A6B029CF47575047C0DD8B45ADF9C0E01A30316B38686F626D736870626D6E62686F356173376E3032696BBD4D8563FFB645FFC34EA732EEC3F9A4',X'C017E84B999FEB43EF1CD558BF5A084A498A141E6FBB50FC57E36580207DF48E',X'49CCD936891B6B632E3A3D4611EAECBE3AA9551BD654F21D22551ACBADA139F1');
INSERT INTO "audit_blocks" VALUES('main',3,15,20,1795892304843,1795892305404,1795892305508,'ee9b1650f1e7070d',X'7560A8579335936595B1B0A83284144D3A9B04AB05201E58002FB09B7B1679C8',X'1A30316B38686F626D7562753463686E64756C673731723775386F76AB99297064167DF3EE1952CAB67B921A30316B38686F626E3164677568356A6B696830616A7431613963F9B33610B7BFF2A0F6EA89D31BBDF1841A30316B38686F626E32666A6A35366731756F716F646932366B642F699450A8B505B21E7B10EEC0E171CD1A30316B38686F626E34646D706F653262766C7376636F326F316947A47F0523372A1A4B47133AB4A7E5AA1A30316B38686F626E65696D746B343371756168696B6D7333716E3B216B47A5A4680696B63526F6768C8D1A30316B38686F626E66736B6B6D6A35373265756F66676574746B31340E44CE77B71AE930A2E98AA43E4C',X'49CCD936891B6B632E3A3D4611EAECBE3AA9551BD654F21D22551ACBADA139F1',X'D07499DF3F8359F786D6E5F887ADDA4D0068B5EF8D84A5209548207513E179CB');
INSERT INTO "audit_blocks" VALUES('main',4,21,22,1795892305722,1795892305728,1795892305793,'ee9b1650f1e7070d',X'CBE33B22588B3A9CBCFEF64664075AFA95B31C13EB1A0F73B7E7BBEAD8D3D740',X'1A30316B38686F626E7071666D6D76646E646D68736A6830696A6F4705CC83DEA7D6513FD44A4F3A7BF8B11A30316B38686F626E71307663646631766E6639376833696E676D5D50F38382E61C2A6C96431A087CEE99',X'D07499DF3F8359F786D6E5F887ADDA4D0068B5EF8D84A5209548207513E179CB',X'AFFCA556E7DDA945581440C8F7FFE3C1373EAFCEF6B1C96B65C5D59CC947A222');
INSERT INTO "audit_blocks" VALUES('main',5,23,42,1795892305941,1795892306669,1795892306803,'ee9b1650f1e7070d',X'56D24B41489F94392F2BC3E2BD0CA1F9B1A602763B0208F494D2402B5F22D997',X'1A30316B38686F626F306C6D706C3274686A74626A39646469716E57D8BCE36063F2E5AFB334DAD0326C4A1A30316B38686F626F3168646F343838613138696C6F713169663824F43ECF26C8C0675FA5FDA94A2F6A531A30316B38686F626F6265616761366164366D706D6133646130630B0815509A5F9FED28323A0F49545D451A30316B38686F626F663374396475726A6B6F6B7335696274723127546466482316710B1F1EE93008C0F21A30316B38686F626F6A7138616C7230356F316E737075743035692AF9C290B6FC301775D7F52F9190EDE91A30316B38686F626F6A71756B6B30676B743170666F356E756B3909AEC4E20A39DB464644D22F9B545ED11A30316B38686F626F6B32676B3838346762333235657071337172104993A89C8D3FA4283C94FB63C0AFD21A30316B38686F626F6B393973306B396266356535736935713874FECAF59B41CFA115E12C81A47F9BBD8B1A30316B38686F626F6B6864393531716D39383934767239316E331E94FC575AC7E15ED9EABA3C850CF2501A30316B38686F626F6B6D6F326A3337756A6368616B70356C6A3342B272D1226880EA83BDFF0782E29E011A30316B38686F626F6B6D73653964343538757137396B6269396DA9E2442A04312260197DC2F6A250C81E1A30316B38686F626F6B6F6C6D75666C63306A7463306B74693837B4E97F442BFE111AEBE1BBE51FADEF731A30316B38686F626F6B746E346665676C6669766872737234636B5F6043226FAD70A767E118E972431EFD1A30316B38686F626F6C626F34363632757271336971616F373664BCFECA52F3A2F0BDF3EE64C1CD2D75D21A30316B38686F626F6C6971326A7261746A76686E6930326634313CF2B2476AA4960C5F09B041B95725A91A30316B38686F626F6C746A6F31616173397232376F34376B756EDC4BD77DDF873536D6368E4FE40269291A30316B38686F626F6D61723975367464367271363361636938678BF1566461CE22A86059667FA4377D4E1A30316B38686F626F6D70697035636B666A7070686E61706A6569406E36E77CFC983EE1C7F5F3C4A9AFA41A30316B38686F626F6D756F3934326339333332336A30326C6D6BAE5DE2E178A856843527E088C4BC63861A30316B38686F626F6E64666A62667370636932636D3863753439FE9E721E18057484573870526D952E57',X'AFFCA556E7DDA945581440C8F7FFE3C1373EAFCEF6B1C96B65C5D59CC947A222',X'C82C2829349AF726A7E613B57ADDAF57A970922DDE61770E08C4F14EDC8B39D8');
INSERT INTO "audit_blocks" VALUES('main',6,43,43,1795892307232,1795892307232,1795892307808,'ee9b1650f1e7070d',X'5825EF5ED3652C22B4401924A46998C140869426EFECD573B34293F709F05328',X'1A30316B38686F62703930736E666E696C6432376E63666F3261745825EF5ED3652C22B4401924A46998C1',X'C82C2829349AF726A7E613B57ADDAF57A970922DDE61770E08C4F14EDC8B39D8',X'D94B700DA25C872E7B592F29643693409DB66AF8D9A78330AC9E552D5B8D4AB6');
CREATE TABLE audit_checkpoints (realm text NOT NULL, number bigint NOT NULL, last_line bigint NOT NULL,
            mac blob NOT NULL, removed_at bigint NOT NULL, key_id text NOT NULL, seal blob NOT NULL,
            PRIMARY KEY (realm)) WITHOUT ROWID;
CREATE TABLE audit_streams (realm text NOT NULL, name text NOT NULL, block bigint NOT NULL,
            line text NOT NULL, moved_at bigint NOT NULL, trouble text NOT NULL, PRIMARY KEY (realm, name))
            WITHOUT ROWID;
CREATE TABLE clients (realm text NOT NULL, id text NOT NULL, data text NOT NULL, secret blob,
            disabled_at bigint, created bigint NOT NULL, epoch bigint NOT NULL DEFAULT 0, life text, PRIMARY KEY (realm, id)) WITHOUT ROWID;
INSERT INTO "clients" VALUES('main','api','{"id":"api","name":"api","redirect_uris":[],"post_logout_redirect_uris":[],"grants":[],"scope":"openid profile email offline_access groups api","auth_methods":["client_secret_basic","client_secret_post"],"jwks":null,"native":false,"pkce_optional":false,"id_token_alg":"RS256","access_format":"jwt","access_alg":"ES256","access_typ_jwt":false,"resources":["https://api.example.test"],"resource_server":true,"trusted":false,"first_party":false,"claims_in_id_token":false,"no_id_token_on_refresh":false,"assertion_aud_endpoint":false,"revived_at":null}',X'317FFE986075B7E00998075B03DBA810FEB18996648D1418C39EF129D326778E',NULL,1795892304975,10,'01k8hobn2f2668ei6qvrmkcpra');
INSERT INTO "clients" VALUES('main','device','{"id":"device","name":"device","redirect_uris":[],"post_logout_redirect_uris":[],"grants":["urn:ietf:params:oauth:grant-type:device_code","refresh_token"],"scope":"openid profile email offline_access groups api","auth_methods":["none"],"jwks":null,"native":false,"pkce_optional":false,"id_token_alg":"RS256","access_format":"jwt","access_alg":"ES256","access_typ_jwt":false,"resources":[],"resource_server":false,"trusted":false,"first_party":false,"claims_in_id_token":false,"no_id_token_on_refresh":false,"assertion_aud_endpoint":false,"revived_at":null}',NULL,NULL,1795892304941,9,'01k8hobn1do77ifb1btn93ahmt');
INSERT INTO "clients" VALUES('main','house','{"id":"house","name":"house","redirect_uris":["https://house.example.test/cb"],"post_logout_redirect_uris":[],"grants":["authorization_code","refresh_token","client_credentials","urn:ietf:params:oauth:grant-type:device_code"],"scope":"openid profile email offline_access groups api","auth_methods":["client_secret_basic","client_secret_post"],"jwks":null,"native":false,"pkce_optional":false,"id_token_alg":"RS256","access_format":"opaque","access_alg":"ES256","access_typ_jwt":false,"resources":["https://api.example.test"],"resource_server":false,"trusted":true,"first_party":false,"claims_in_id_token":false,"no_id_token_on_refresh":false,"assertion_aud_endpoint":false,"revived_at":null}',X'317FFE986075B7E00998075B03DBA810FEB18996648D1418C39EF129D326778E',NULL,1795892304785,7,'01k8hobmsh5tpb6m5m20n5krr9');
INSERT INTO "clients" VALUES('main','off','{"id":"off","name":"off","redirect_uris":["https://off.example.test/cb"],"post_logout_redirect_uris":[],"grants":["authorization_code","refresh_token"],"scope":"openid profile email offline_access groups api","auth_methods":["client_secret_basic","client_secret_post"],"jwks":null,"native":false,"pkce_optional":false,"id_token_alg":"RS256","access_format":"jwt","access_alg":"ES256","access_typ_jwt":false,"resources":[],"resource_server":false,"trusted":false,"first_party":false,"claims_in_id_token":false,"no_id_token_on_refresh":false,"assertion_aud_endpoint":false,"revived_at":null}',X'317FFE986075B7E00998075B03DBA810FEB18996648D1418C39EF129D326778E',1795892305404,1795892305362,13,'01k8hobnei0vqg05ntu1hh09b3');
INSERT INTO "clients" VALUES('main','portiere-try','{"id":"portiere-try","name":"Try it","redirect_uris":["http://localhost:25110/try/callback"],"post_logout_redirect_uris":["http://localhost:25110/try"],"grants":["authorization_code"],"scope":"openid profile email","auth_methods":["none"],"jwks":null,"native":false,"pkce_optional":false,"id_token_alg":"RS256","access_format":"jwt","access_alg":"ES256","access_typ_jwt":false,"resources":[],"resource_server":false,"trusted":false,"first_party":false,"claims_in_id_token":false,"no_id_token_on_refresh":false,"assertion_aud_endpoint":false,"revived_at":null}',NULL,NULL,1795892305728,15,'01k8hobnq0t1sohs51t9uou0er');
INSERT INTO "clients" VALUES('main','signed','{"id":"signed","name":"signed","redirect_uris":[],"post_logout_redirect_uris":[],"grants":["client_credentials"],"scope":"openid profile email offline_access groups api","auth_methods":["private_key_jwt"],"jwks":{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","use":"sig"}]},"native":false,"pkce_optional":false,"id_token_alg":"EdDSA","access_format":"jwt","access_alg":"ES256","access_typ_jwt":false,"resources":[],"resource_server":false,"trusted":false,"first_party":false,"claims_in_id_token":false,"no_id_token_on_refresh":false,"assertion_aud_endpoint":false,"revived_at":null}',NULL,NULL,1795892305037,11,'01k8hobn4deo3qdipfuqlmns5j');
INSERT INTO "clients" VALUES('main','spa','{"id":"spa","name":"spa","redirect_uris":["https://spa.example.test/cb"],"post_logout_redirect_uris":[],"grants":["authorization_code","refresh_token"],"scope":"openid profile email offline_access groups api","auth_methods":["none"],"jwks":null,"native":false,"pkce_optional":false,"id_token_alg":"RS256","access_format":"jwt","access_alg":"ES256","access_typ_jwt":false,"resources":[],"resource_server":false,"trusted":false,"first_party":true,"claims_in_id_token":false,"no_id_token_on_refresh":false,"assertion_aud_endpoint":false,"revived_at":null}',NULL,NULL,1795892304843,8,'01k8hobmub18tif473pdr4raa4');
INSERT INTO "clients" VALUES('main','web','{"id":"web","name":"web","redirect_uris":["https://web.example.test/cb"],"post_logout_redirect_uris":["https://web.example.test/bye"],"grants":["authorization_code","refresh_token"],"scope":"openid profile email offline_access groups api","auth_methods":["client_secret_basic","client_secret_post"],"jwks":null,"native":false,"pkce_optional":false,"id_token_alg":"RS256","access_format":"jwt","access_alg":"ES256","access_typ_jwt":false,"resources":[],"resource_server":false,"trusted":false,"first_party":false,"claims_in_id_token":false,"no_id_token_on_refresh":false,"assertion_aud_endpoint":false,"revived_at":null}',X'317FFE986075B7E00998075B03DBA810FEB18996648D1418C39EF129D326778E',NULL,1795892304746,6,'01k8hobmra1agijtr159h691bm');
CREATE TABLE codes (realm text NOT NULL, family text NOT NULL, handle blob NOT NULL, client_id text NOT NULL,
            user_id text NOT NULL, session_id text NOT NULL, by_consent bigint, redirect_uri text NOT NULL,
            challenge text, granted text NOT NULL, expires bigint NOT NULL, redeemed_at bigint, life text,
            PRIMARY KEY (realm, family)) WITHOUT ROWID;
INSERT INTO "codes" VALUES('main','01k8hobojq7o14lqsvnso2skvr',X'F5E433E6668D23FB2274C1196EC819872EDE98D367510D1DBFD7A8E1551D139F','web','ls7eZAgAVe28pBC5_WmsmA','01k8hobof3lmo66nqgfdgkd356',1795892306554,'https://web.example.test/cb','E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM','{"scope":"openid email offline_access","auth_time":1795892306403,"amr":["pwd"],"acr":"1","nonce":"n-0S6","claims":{}}',1795892366554,1795892306562,'01k8hobmra1agijtr159h691bm');
INSERT INTO "codes" VALUES('main','01k8hobokmi1sdm9icmrlsa7v1',X'99247D8B1DD95749BF6CDF0EB5B64B2ADE1370AC26D841259DE80D7523EC7625','web','ls7eZAgAVe28pBC5_WmsmA','01k8hobof3lmo66nqgfdgkd356',1795892306554,'https://web.example.test/cb','E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM','{"scope":"openid profile email","auth_time":1795892306403,"amr":["pwd"],"acr":"1","nonce":"n-0S6","claims":{}}',1795892366582,1795892306584,'01k8hobmra1agijtr159h691bm');
INSERT INTO "codes" VALUES('main','01k8hoboktctlcmh82utf2cmrb',X'E53ED94B7B895BF1B2A2079449B09DC9F974241770AF882BFD45DFE18FDBD61A','web','ls7eZAgAVe28pBC5_WmsmA','01k8hobof3lmo66nqgfdgkd356',1795892306554,'https://web.example.test/cb','E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM','{"scope":"openid profile email","auth_time":1795892306403,"amr":["pwd"],"acr":"1","nonce":"n-0S6","claims":{}}',1795892366589,NULL,'01k8hobmra1agijtr159h691bm');
INSERT INTO "codes" VALUES('main','01k8hobolb524f3v6mv6seilfg',X'F07D0DEEEE67C5D9F74A3CC7298C423E64DAFE34A158798F48F0B81F6125B8E8','house','ls7eZAgAVe28pBC5_WmsmA','01k8hobof3lmo66nqgfdgkd356',NULL,'https://house.example.test/cb','E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM','{"scope":"openid email offline_access","resources":["https://api.example.test"],"auth_time":1795892306403,"amr":["pwd"],"acr":"1","nonce":"n-0S6","claims":{}}',1795892366603,1795892306610,'01k8hobmsh5tpb6m5m20n5krr9');
INSERT INTO "codes" VALUES('main','01k8hobompp2koh9b18l7dpd4i',X'ECA27588F7E08B33657353438F21B612BA36B338FFEC0724F9AFB30402F54306','house','ls7eZAgAVe28pBC5_WmsmA','01k8hobof3lmo66nqgfdgkd356',NULL,'https://house.example.test/cb','E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM','{"scope":"openid profile email","resources":["https://api.example.test"],"auth_time":1795892306403,"amr":["pwd"],"acr":"1","nonce":"n-0S6","claims":{}}',1795892366649,1795892306654,'01k8hobmsh5tpb6m5m20n5krr9');
INSERT INTO "codes" VALUES('main','01k8hobondrhumsok25f4do6a1',X'540D1E333FEEE82E4D31D169290CBEBD0E012C646806F3CE81B19B26167D3333','house','ls7eZAgAVe28pBC5_WmsmA','01k8hobof3lmo66nqgfdgkd356',NULL,'https://house.example.test/cb','E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM','{"scope":"openid profile email","resources":["https://api.example.test"],"auth_time":1795892306403,"amr":["pwd"],"acr":"1","nonce":"n-0S6","claims":{}}',1795892366669,NULL,'01k8hobmsh5tpb6m5m20n5krr9');
CREATE TABLE consents (realm text NOT NULL, user_id text NOT NULL, client_id text NOT NULL,
            scope text NOT NULL, granted bigint NOT NULL, PRIMARY KEY (realm, user_id, client_id)) WITHOUT ROWID;
INSERT INTO "consents" VALUES('main','ls7eZAgAVe28pBC5_WmsmA','web','openid email offline_access profile',1795892306554);
CREATE TABLE counters (realm text NOT NULL, name blob NOT NULL, count bigint NOT NULL,
            until bigint NOT NULL, expires bigint NOT NULL, PRIMARY KEY (realm, name)) WITHOUT ROWID;
INSERT INTO "counters" VALUES('main',X'12C75BC96A9A8382F461D4990392B942BE4560D3C7BA32AC99D35BE29353A8DA',1,0,1795978706680);
INSERT INTO "counters" VALUES('main',X'2FA97192ADD7983E8E598EB9EEBA4B12DE0E864D6D0D053468EB383E1875D302',1,0,1795978707242);
INSERT INTO "counters" VALUES('main',X'3F13BDA72FFC5088D188F7475CB242B4AB0BF80515ACA24D22C3408B037A9EB5',2,1795892307749,1795892313232);
INSERT INTO "counters" VALUES('main',X'B119C227DF6DFA9CB406235AD240E30A8D9EEC45E72689E06B0E8FE48017506F',2,1795892307749,1795892367232);
CREATE TABLE devices (realm text NOT NULL, handle blob NOT NULL, user_code blob NOT NULL,
            client_id text NOT NULL, scope text NOT NULL, resources text NOT NULL, address text NOT NULL,
            asked bigint NOT NULL, expires bigint NOT NULL, interval_s bigint NOT NULL, polled bigint,
            stage text NOT NULL, user_id text, session_id text, family text, granted text, life text,
            PRIMARY KEY (realm, handle), UNIQUE (realm, user_code)) WITHOUT ROWID;
INSERT INTO "devices" VALUES('main',X'D23B88334A3C740DC4DB5E7A330B84F8957520EBA1977F37E48C4909531301A7',X'10AFABA9493F8C6FF0F3B7D0F04133C310E245604E577D040F57305C085C9D69','device','openid','[]','127.0.0.1',1795892306674,1795892906674,5,NULL,'pending',NULL,NULL,NULL,NULL,'01k8hobn1do77ifb1btn93ahmt');
CREATE TABLE events (realm text NOT NULL, id text NOT NULL, at bigint NOT NULL, kind text NOT NULL,
            user_id text, client_id text, session_id text, address text, detail text NOT NULL, request text, block bigint NOT NULL DEFAULT 0,
            PRIMARY KEY (realm, id)) WITHOUT ROWID;
INSERT INTO "events" VALUES('main','01k8hoblr2er97orfaemkamhbt',1795892303714,'key.rotated',NULL,NULL,NULL,NULL,'{"kid":"dCmvALHcNjme0pa9v92dyw"}',NULL,1);
INSERT INTO "events" VALUES('main','01k8hoblr2jlf0a3ks7ihkmu67',1795892303714,'key.rotated',NULL,NULL,NULL,NULL,'{"kid":"6CEDR0ywRCiIqrmEl4YOIw"}',NULL,1);
INSERT INTO "events" VALUES('main','01k8hoblr2viap30l367chdm5q',1795892303714,'key.rotated',NULL,NULL,NULL,NULL,'{"kid":"peYlRASsr9DrpMxLXoAdRw"}',NULL,1);
INSERT INTO "events" VALUES('main','01k8hoblr61skldlltf9bmvrlr',1795892303718,'client.added',NULL,'portiere-try',NULL,NULL,'{"auth_methods":{"added":["none"],"removed":[]},"grants":{"added":["authorization_code"],"removed":[]},"post_logout_redirect_uris":{"added":["http://localhost:23778/try"],"removed":[]},"redirect_uris":{"added":["http://localhost:23778/try/callback"],"removed":[]},"scope":{"added":["openid","profile","email"],"removed":[]}}',NULL,1);
INSERT INTO "events" VALUES('main','01k8hoblr7ubrh0m9n150q4vjt',1795892303719,'realm.setup_offered',NULL,NULL,NULL,NULL,'{}',NULL,1);
INSERT INTO "events" VALUES('main','01k8hobm654g5tpr7nspb46dpn',1795892304069,'user.added','ls7eZAgAVe28pBC5_WmsmA',NULL,NULL,NULL,'{"by":"operator","role":"owner","uid":0}',NULL,2);
INSERT INTO "events" VALUES('main','01k8hobm6kkag9eejq46egoaou',1795892304084,'user.changed','ls7eZAgAVe28pBC5_WmsmA',NULL,NULL,NULL,'{"by":"operator","changed":"name locale","uid":0}',NULL,2);
INSERT INTO "events" VALUES('main','01k8hobmb64pa9502fu929ce9c',1795892304230,'user.added','bQLLFydqtvB-FXFzNArEPg',NULL,NULL,NULL,'{"by":"operator","uid":0}',NULL,2);
INSERT INTO "events" VALUES('main','01k8hobmlkhq5g8hhsgk0nva3u',1795892304564,'user.added','vjLHYHZvuuPLS3KywxYJNg',NULL,NULL,NULL,'{"by":"operator","uid":0}',NULL,2);
INSERT INTO "events" VALUES('main','01k8hobmn5resuu6ohckg8k1lj',1795892304613,'user.disabled','vjLHYHZvuuPLS3KywxYJNg',NULL,NULL,NULL,'{"by":"operator","uid":0}',NULL,2);
INSERT INTO "events" VALUES('main','01k8hobmotsq1f5720qe0ap9so',1795892304669,'group.changed',NULL,NULL,NULL,NULL,'{"by":"operator","group":"staff","uid":0,"what":"added"}',NULL,2);
INSERT INTO "events" VALUES('main','01k8hobmpkfsqoh3p6gopf0vpl',1795892304692,'group.changed','ls7eZAgAVe28pBC5_WmsmA',NULL,NULL,NULL,'{"by":"operator","group":"staff","uid":0,"what":"joined"}',NULL,2);
INSERT INTO "events" VALUES('main','01k8hobmraofku1drm23vl7ibh',1795892304746,'client.added',NULL,'web',NULL,NULL,'{"auth_methods":{"added":["client_secret_basic","client_secret_post"],"removed":[]},"by":"operator","grants":{"added":["authorization_code","refresh_token"],"removed":[]},"post_logout_redirect_uris":{"added":["https://web.example.test/bye"],"removed":[]},"redirect_uris":{"added":["https://web.example.test/cb"],"removed":[]},"scope":{"added":["openid","profile","email","offline_access","groups","api"],"removed":[]},"uid":0}',NULL,2);
INSERT INTO "events" VALUES('main','01k8hobmshpbmnbho5as7n02ik',1795892304785,'client.added',NULL,'house',NULL,NULL,'{"auth_methods":{"added":["client_secret_basic","client_secret_post"],"removed":[]},"by":"operator","grants":{"added":["authorization_code","refresh_token","client_credentials","urn:ietf:params:oauth:grant-type:device_code"],"removed":[]},"redirect_uris":{"added":["https://house.example.test/cb"],"removed":[]},"resources":{"added":["https://api.example.test"],"removed":[]},"scope":{"added":["openid","profile","email","offline_access","groups","api"],"removed":[]},"trusted":{"is":true,"was":false},"uid":0}',NULL,2);
INSERT INTO "events" VALUES('main','01k8hobmubu4chndulg71r7u8o',1795892304843,'client.added',NULL,'spa',NULL,NULL,'{"auth_methods":{"added":["none"],"removed":[]},"by":"operator","first_party":{"is":true,"was":false},"grants":{"added":["authorization_code","refresh_token"],"removed":[]},"redirect_uris":{"added":["https://spa.example.test/cb"],"removed":[]},"scope":{"added":["openid","profile","email","offline_access","groups","api"],"removed":[]},"uid":0}',NULL,3);
INSERT INTO "events" VALUES('main','01k8hobn1dguh5jkih0ajt1a9c',1795892304941,'client.added',NULL,'device',NULL,NULL,'{"auth_methods":{"added":["none"],"removed":[]},"by":"operator","grants":{"added":["urn:ietf:params:oauth:grant-type:device_code","refresh_token"],"removed":[]},"scope":{"added":["openid","profile","email","offline_access","groups","api"],"removed":[]},"uid":0}',NULL,3);
INSERT INTO "events" VALUES('main','01k8hobn2fjj56g1uoqodi26kd',1795892304975,'client.added',NULL,'api',NULL,NULL,'{"auth_methods":{"added":["client_secret_basic","client_secret_post"],"removed":[]},"by":"operator","resource_server":{"is":true,"was":false},"resources":{"added":["https://api.example.test"],"removed":[]},"scope":{"added":["openid","profile","email","offline_access","groups","api"],"removed":[]},"uid":0}',NULL,3);
INSERT INTO "events" VALUES('main','01k8hobn4dmpoe2bvlsvco2o1i',1795892305037,'client.added',NULL,'signed',NULL,NULL,'{"auth_methods":{"added":["private_key_jwt"],"removed":[]},"by":"operator","grants":{"added":["client_credentials"],"removed":[]},"scope":{"added":["openid","profile","email","offline_access","groups","api"],"removed":[]},"uid":0}',NULL,3);
INSERT INTO "events" VALUES('main','01k8hobneimtk43quahikms3qn',1795892305362,'client.added',NULL,'off',NULL,NULL,'{"auth_methods":{"added":["client_secret_basic","client_secret_post"],"removed":[]},"by":"operator","grants":{"added":["authorization_code","refresh_token"],"removed":[]},"redirect_uris":{"added":["https://off.example.test/cb"],"removed":[]},"scope":{"added":["openid","profile","email","offline_access","groups","api"],"removed":[]},"uid":0}',NULL,3);
INSERT INTO "events" VALUES('main','01k8hobnfskkmj572euofgettk',1795892305404,'client.changed',NULL,'off',NULL,NULL,'{"by":"operator","uid":0,"what":"disabled"}',NULL,3);
INSERT INTO "events" VALUES('main','01k8hobnpqfmmvdndmhsjh0ijo',1795892305722,'client.removed',NULL,'portiere-try',NULL,NULL,'{}',NULL,4);
INSERT INTO "events" VALUES('main','01k8hobnq0vcdf1vnf97h3ingm',1795892305728,'client.added',NULL,'portiere-try',NULL,NULL,'{"auth_methods":{"added":["none"],"removed":[]},"grants":{"added":["authorization_code"],"removed":[]},"post_logout_redirect_uris":{"added":["http://localhost:25110/try"],"removed":[]},"redirect_uris":{"added":["http://localhost:25110/try/callback"],"removed":[]},"scope":{"added":["openid","profile","email"],"removed":[]}}',NULL,4);
INSERT INTO "events" VALUES('main','01k8hobo0lmpl2thjtbj9ddiqn',1795892305941,'user.added','-IUKU97aNSYST1as9yupAw',NULL,NULL,NULL,'{"by":"operator","uid":0}',NULL,5);
INSERT INTO "events" VALUES('main','01k8hobo1hdo488a18iloq1if8',1795892305969,'worker.offered',NULL,NULL,NULL,NULL,'{"by":"operator","uid":0}',NULL,5);
INSERT INTO "events" VALUES('main','01k8hobobeaga6ad6mpma3da0c',1795892306286,'worker.enrolled',NULL,NULL,NULL,'127.0.0.1','{"worker":"made-up-worker"}',NULL,5);
INSERT INTO "events" VALUES('main','01k8hobof3t9durjkoks5ibtr1',1795892306403,'session.started','ls7eZAgAVe28pBC5_WmsmA',NULL,'01k8hobof3lmo66nqgfdgkd356','127.0.0.1','{}','Pklea1LZf0FG4WDR',5);
INSERT INTO "events" VALUES('main','01k8hobojq8alr05o1nsput05i',1795892306554,'consent.granted','ls7eZAgAVe28pBC5_WmsmA','web',NULL,'127.0.0.1','{"scope":"openid email offline_access"}','8-79-mb4hZxg9vxS',5);
INSERT INTO "events" VALUES('main','01k8hobojqukk0gkt1pfo5nuk9',1795892306554,'code.issued','ls7eZAgAVe28pBC5_WmsmA','web','01k8hobof3lmo66nqgfdgkd356','127.0.0.1','{}','8-79-mb4hZxg9vxS',5);
INSERT INTO "events" VALUES('main','01k8hobok2gk884gb325epq3qr',1795892306562,'tokens.issued','ls7eZAgAVe28pBC5_WmsmA','web','01k8hobof3lmo66nqgfdgkd356','127.0.0.1','{"grant":"authorization_code"}','gn-DPJQpMjz4fEI8',5);
INSERT INTO "events" VALUES('main','01k8hobok99s0k9bf5e5si5q8t',1795892306569,'tokens.issued','ls7eZAgAVe28pBC5_WmsmA','web',NULL,'127.0.0.1','{"grant":"refresh_token"}','MrrJYxIJBr803pcP',5);
INSERT INTO "events" VALUES('main','01k8hobokhd951qm9894vr91n3',1795892306577,'tokens.revoked','ls7eZAgAVe28pBC5_WmsmA','web','01k8hobof3lmo66nqgfdgkd356','127.0.0.1','{"kind":"access_token"}','QXEGeXAlN6TeWZB8',5);
INSERT INTO "events" VALUES('main','01k8hobokmo2j37ujchakp5lj3',1795892306582,'code.issued','ls7eZAgAVe28pBC5_WmsmA','web','01k8hobof3lmo66nqgfdgkd356','127.0.0.1','{}','nWQJP7CWUb0ZiXh6',5);
INSERT INTO "events" VALUES('main','01k8hobokmse9d458uq79kbi9m',1795892306582,'consent.granted','ls7eZAgAVe28pBC5_WmsmA','web',NULL,'127.0.0.1','{"scope":"openid email offline_access profile"}','nWQJP7CWUb0ZiXh6',5);
INSERT INTO "events" VALUES('main','01k8hobokolmuflc0jtc0kti87',1795892306584,'tokens.issued','ls7eZAgAVe28pBC5_WmsmA','web','01k8hobof3lmo66nqgfdgkd356','127.0.0.1','{"grant":"authorization_code"}','arYPOqQuls0wVeNw',5);
INSERT INTO "events" VALUES('main','01k8hoboktn4feglfivhrsr4ck',1795892306589,'code.issued','ls7eZAgAVe28pBC5_WmsmA','web','01k8hobof3lmo66nqgfdgkd356','127.0.0.1','{}','FlgkxAT_LHWHPr48',5);
INSERT INTO "events" VALUES('main','01k8hobolbo4662urq3iqao76d',1795892306603,'code.issued','ls7eZAgAVe28pBC5_WmsmA','house','01k8hobof3lmo66nqgfdgkd356','127.0.0.1','{}','EQpVE30hrFTPU-h2',5);
INSERT INTO "events" VALUES('main','01k8hoboliq2jratjvhni02f41',1795892306610,'tokens.issued','ls7eZAgAVe28pBC5_WmsmA','house','01k8hobof3lmo66nqgfdgkd356','127.0.0.1','{"grant":"authorization_code"}','uarKFVIMQl2xPqt4',5);
INSERT INTO "events" VALUES('main','01k8hoboltjo1aas9r27o47kun',1795892306621,'tokens.issued','ls7eZAgAVe28pBC5_WmsmA','house',NULL,'127.0.0.1','{"grant":"refresh_token"}','mVOgglPJIO4iiaki',5);
INSERT INTO "events" VALUES('main','01k8hobomar9u6td6rq63aci8g',1795892306634,'tokens.revoked','ls7eZAgAVe28pBC5_WmsmA','house','01k8hobof3lmo66nqgfdgkd356','127.0.0.1','{"kind":"access_token"}','xIqKy8_W2BBbZpW0',5);
INSERT INTO "events" VALUES('main','01k8hobompip5ckfjpphnapjei',1795892306649,'code.issued','ls7eZAgAVe28pBC5_WmsmA','house','01k8hobof3lmo66nqgfdgkd356','127.0.0.1','{}','ymhqn0oUnnEXVoLo',5);
INSERT INTO "events" VALUES('main','01k8hobomuo942c93323j02lmk',1795892306654,'tokens.issued','ls7eZAgAVe28pBC5_WmsmA','house','01k8hobof3lmo66nqgfdgkd356','127.0.0.1','{"grant":"authorization_code"}','Wa-Nrd2LWDATXa6q',5);
INSERT INTO "events" VALUES('main','01k8hobondfjbfspci2cm8cu49',1795892306669,'code.issued','ls7eZAgAVe28pBC5_WmsmA','house','01k8hobof3lmo66nqgfdgkd356','127.0.0.1','{}','YqoJJoAlTECDnmdO',5);
INSERT INTO "events" VALUES('main','01k8hobp90snfnild27ncfo2at',1795892307232,'signin.failed','ls7eZAgAVe28pBC5_WmsmA',NULL,NULL,'127.0.0.1','{}','DkEPPciRmdnqYFn2',6);
CREATE TABLE families (realm text NOT NULL, id text NOT NULL, client_id text NOT NULL, user_id text NOT NULL,
            session_id text, granted text NOT NULL, current_hash blob, previous_hash blob, previous_until bigint,
            bridge blob, created bigint NOT NULL, idle_until bigint NOT NULL, expires bigint NOT NULL,
            revoked_at bigint, turn bigint NOT NULL DEFAULT 0, life text, PRIMARY KEY (realm, id)) WITHOUT ROWID;
INSERT INTO "families" VALUES('main','01k8hobojq7o14lqsvnso2skvr','web','ls7eZAgAVe28pBC5_WmsmA',NULL,'{"scope":"openid email offline_access","auth_time":1795892306403,"amr":["pwd"],"acr":"1","claims":{},"session":"01k8hobof3lmo66nqgfdgkd356"}',X'C5FDB24463AEE712B1DE3FE85BA2506995DF89E04A0406C71C1FCF63F45B83B1',X'209ACA9A0D232BA19D912F903AF614FC8096E1BC9057499D4BC66F9BD491CE49',1795892316569,X'37A0499270BBE7621607ED1C91FAE9ADE3B3E34FED5B9EAB5796491F3A2227C6',1795892306562,1798484306569,1803668306562,NULL,1,'01k8hobmra1agijtr159h691bm');
INSERT INTO "families" VALUES('main','01k8hobokmi1sdm9icmrlsa7v1','web','ls7eZAgAVe28pBC5_WmsmA','01k8hobof3lmo66nqgfdgkd356','{"scope":"openid profile email","auth_time":1795892306403,"amr":["pwd"],"acr":"1","claims":{},"session":"01k8hobof3lmo66nqgfdgkd356"}',X'369A16AC8258AB3BE50CB8A306FA04B226A20FA8AD6E064A53C238297AA2EE02',NULL,NULL,NULL,1795892306584,1798484306584,1803668306584,NULL,0,'01k8hobmra1agijtr159h691bm');
INSERT INTO "families" VALUES('main','01k8hobolb524f3v6mv6seilfg','house','ls7eZAgAVe28pBC5_WmsmA',NULL,'{"scope":"openid email offline_access","resources":["https://api.example.test"],"auth_time":1795892306403,"amr":["pwd"],"acr":"1","claims":{},"session":"01k8hobof3lmo66nqgfdgkd356"}',X'6AF258330172797D3D15AE72B06D268E3117B1AA380C61676C9DD8F77EACC387',X'FB5200E33BC096874568F381023D15826A9D2CBBF1C201441F345C7B7F7D8481',1795892316621,X'F09B851493DC41A835CEBAFE67C397EE8ABBC12A45448355BEBEA40308F0D4B3',1795892306610,1798484306621,1803668306610,NULL,1,'01k8hobmsh5tpb6m5m20n5krr9');
INSERT INTO "families" VALUES('main','01k8hobompp2koh9b18l7dpd4i','house','ls7eZAgAVe28pBC5_WmsmA','01k8hobof3lmo66nqgfdgkd356','{"scope":"openid profile email","resources":["https://api.example.test"],"auth_time":1795892306403,"amr":["pwd"],"acr":"1","claims":{},"session":"01k8hobof3lmo66nqgfdgkd356"}',X'5B7B7F054B53618F367F78F45230ABF160D3816213ADCDD056B69FC335651256',NULL,NULL,NULL,1795892306654,1798484306654,1803668306654,NULL,0,'01k8hobmsh5tpb6m5m20n5krr9');
CREATE TABLE fence_nodes (realm text NOT NULL, number bigint NOT NULL, node text NOT NULL,
            state text NOT NULL, at bigint NOT NULL, PRIMARY KEY (realm, number, node)) WITHOUT ROWID;
CREATE TABLE fences (realm text NOT NULL, number bigint NOT NULL, at bigint NOT NULL, identity text NOT NULL,
            epoch bigint NOT NULL, PRIMARY KEY (realm, number)) WITHOUT ROWID;
CREATE TABLE hash_kinds (realm text NOT NULL, kind text NOT NULL, announced bigint NOT NULL,
            PRIMARY KEY (realm, kind)) WITHOUT ROWID;
INSERT INTO "hash_kinds" VALUES('main','all',1795892305798);
INSERT INTO "hash_kinds" VALUES('main','argon2id v=19 m=19456 t=2 p=1',1795892303778);
INSERT INTO "hash_kinds" VALUES('main','argon2id v=19 m=19456 t=2 p=1 bound',1795892305800);
INSERT INTO "hash_kinds" VALUES('main','pbkdf2-sha256 n=1024 bytes=32',1795892304189);
CREATE TABLE leases (realm text NOT NULL, job text NOT NULL, node text NOT NULL, until bigint NOT NULL,
            PRIMARY KEY (realm, job)) WITHOUT ROWID;
CREATE TABLE logins (realm text NOT NULL, name text NOT NULL, user_id text NOT NULL,
            PRIMARY KEY (realm, name)) WITHOUT ROWID;
INSERT INTO "logins" VALUES('main','bob','-IUKU97aNSYST1as9yupAw');
INSERT INTO "logins" VALUES('main','bob@example.test','-IUKU97aNSYST1as9yupAw');
INSERT INTO "logins" VALUES('main','cleo','bQLLFydqtvB-FXFzNArEPg');
INSERT INTO "logins" VALUES('main','cleo@example.test','bQLLFydqtvB-FXFzNArEPg');
INSERT INTO "logins" VALUES('main','ada','ls7eZAgAVe28pBC5_WmsmA');
INSERT INTO "logins" VALUES('main','ada@example.test','ls7eZAgAVe28pBC5_WmsmA');
INSERT INTO "logins" VALUES('main','dora','vjLHYHZvuuPLS3KywxYJNg');
CREATE TABLE members (realm text NOT NULL, user_id text NOT NULL, group_id text NOT NULL, epoch bigint NOT NULL DEFAULT 0,
            PRIMARY KEY (realm, user_id, group_id)) WITHOUT ROWID;
INSERT INTO "members" VALUES('main','ls7eZAgAVe28pBC5_WmsmA','-8nUgUvwmz4nio9-XJegrw',6);
CREATE TABLE moves (part text NOT NULL, move text NOT NULL, state text NOT NULL, detail text NOT NULL,
            PRIMARY KEY (part)) WITHOUT ROWID;
CREATE TABLE nodes (realm text NOT NULL, node text NOT NULL, seen bigint NOT NULL, mark bigint NOT NULL, version text, class text, journal text, gone bigint,
            PRIMARY KEY (realm, node)) WITHOUT ROWID;
CREATE TABLE opaque_tokens (realm text NOT NULL, handle blob NOT NULL, claims text NOT NULL,
            expires bigint NOT NULL, PRIMARY KEY (realm, handle)) WITHOUT ROWID;
INSERT INTO "opaque_tokens" VALUES('main',X'19587C6B5091274EE1D6AB29A980F6ECE5627D74A6016ED77F769C901737F511','{"iss":"http://localhost:25110","sub":"ls7eZAgAVe28pBC5_WmsmA","aud":"https://api.example.test","exp":1795893206,"iat":1795892306,"jti":"01k8hobolb524f3v6mv6seilfg.WLWVetWzHFhvjRTo23C2FQ","client_id":"house","scope":"openid email offline_access","auth_time":1795892306,"acr":"1","amr":["pwd"]}',1795893206610);
INSERT INTO "opaque_tokens" VALUES('main',X'989AF3D7B1699AC0EC274371183A0147E459D2B0F9524FBD6C51A4DB099845E2','{"iss":"http://localhost:25110","sub":"ls7eZAgAVe28pBC5_WmsmA","aud":"https://api.example.test","exp":1795893206,"iat":1795892306,"jti":"01k8hobompp2koh9b18l7dpd4i.h3Thc_TNhPoreqG8zSdP3Q","client_id":"house","scope":"openid profile email","auth_time":1795892306,"acr":"1","amr":["pwd"]}',1795893206654);
CREATE TABLE owners (realm text NOT NULL, user_id text NOT NULL, PRIMARY KEY (realm)) WITHOUT ROWID;
INSERT INTO "owners" VALUES('main','ls7eZAgAVe28pBC5_WmsmA');
CREATE TABLE realms (id text NOT NULL, issuer text NOT NULL, epoch bigint NOT NULL, created bigint NOT NULL, fenced text,
            PRIMARY KEY (id)) WITHOUT ROWID;
INSERT INTO "realms" VALUES('main','http://localhost:25110',17,1795892303604,NULL);
CREATE TABLE rejections (realm text NOT NULL, minute bigint NOT NULL, what text NOT NULL,
            address text NOT NULL, count bigint NOT NULL, PRIMARY KEY (realm, minute, what, address)) WITHOUT ROWID;
INSERT INTO "rejections" VALUES('main',29931538,'client:web','127.0.0.1',1);
CREATE TABLE revoked_tokens (realm text NOT NULL, jti text NOT NULL, expires bigint NOT NULL,
            PRIMARY KEY (realm, jti)) WITHOUT ROWID;
INSERT INTO "revoked_tokens" VALUES('main','01k8hobojq7o14lqsvnso2skvr.xng3dGCwVehRPMaRiVrEmA',1795893326000);
CREATE TABLE schema_steps (version bigint NOT NULL, step bigint NOT NULL, PRIMARY KEY (version, step));
INSERT INTO "schema_steps" VALUES(1,0);
INSERT INTO "schema_steps" VALUES(1,1);
INSERT INTO "schema_steps" VALUES(1,2);
INSERT INTO "schema_steps" VALUES(1,3);
INSERT INTO "schema_steps" VALUES(1,4);
INSERT INTO "schema_steps" VALUES(1,5);
INSERT INTO "schema_steps" VALUES(1,6);
INSERT INTO "schema_steps" VALUES(1,7);
INSERT INTO "schema_steps" VALUES(1,8);
INSERT INTO "schema_steps" VALUES(1,9);
INSERT INTO "schema_steps" VALUES(1,10);
INSERT INTO "schema_steps" VALUES(1,11);
INSERT INTO "schema_steps" VALUES(1,12);
INSERT INTO "schema_steps" VALUES(1,13);
INSERT INTO "schema_steps" VALUES(1,14);
INSERT INTO "schema_steps" VALUES(1,15);
INSERT INTO "schema_steps" VALUES(1,16);
INSERT INTO "schema_steps" VALUES(1,17);
INSERT INTO "schema_steps" VALUES(1,18);
INSERT INTO "schema_steps" VALUES(1,19);
INSERT INTO "schema_steps" VALUES(1,20);
INSERT INTO "schema_steps" VALUES(1,21);
INSERT INTO "schema_steps" VALUES(1,22);
INSERT INTO "schema_steps" VALUES(1,23);
INSERT INTO "schema_steps" VALUES(1,24);
INSERT INTO "schema_steps" VALUES(1,25);
INSERT INTO "schema_steps" VALUES(1,26);
INSERT INTO "schema_steps" VALUES(1,27);
INSERT INTO "schema_steps" VALUES(1,28);
INSERT INTO "schema_steps" VALUES(2,0);
INSERT INTO "schema_steps" VALUES(3,0);
INSERT INTO "schema_steps" VALUES(4,0);
INSERT INTO "schema_steps" VALUES(4,1);
INSERT INTO "schema_steps" VALUES(5,0);
INSERT INTO "schema_steps" VALUES(5,1);
INSERT INTO "schema_steps" VALUES(5,2);
INSERT INTO "schema_steps" VALUES(5,3);
INSERT INTO "schema_steps" VALUES(5,4);
INSERT INTO "schema_steps" VALUES(5,5);
INSERT INTO "schema_steps" VALUES(5,6);
INSERT INTO "schema_steps" VALUES(6,0);
INSERT INTO "schema_steps" VALUES(7,0);
INSERT INTO "schema_steps" VALUES(7,1);
INSERT INTO "schema_steps" VALUES(7,2);
INSERT INTO "schema_steps" VALUES(7,3);
INSERT INTO "schema_steps" VALUES(7,4);
INSERT INTO "schema_steps" VALUES(8,0);
INSERT INTO "schema_steps" VALUES(8,1);
INSERT INTO "schema_steps" VALUES(8,2);
INSERT INTO "schema_steps" VALUES(8,3);
INSERT INTO "schema_steps" VALUES(8,4);
INSERT INTO "schema_steps" VALUES(8,5);
INSERT INTO "schema_steps" VALUES(9,0);
INSERT INTO "schema_steps" VALUES(9,1);
INSERT INTO "schema_steps" VALUES(10,0);
INSERT INTO "schema_steps" VALUES(10,1);
INSERT INTO "schema_steps" VALUES(10,2);
INSERT INTO "schema_steps" VALUES(10,3);
INSERT INTO "schema_steps" VALUES(11,0);
INSERT INTO "schema_steps" VALUES(12,0);
INSERT INTO "schema_steps" VALUES(12,1);
INSERT INTO "schema_steps" VALUES(13,0);
CREATE TABLE schema_versions (version bigint NOT NULL, oldest bigint NOT NULL, PRIMARY KEY (version));
INSERT INTO "schema_versions" VALUES(1,1);
INSERT INTO "schema_versions" VALUES(2,1);
INSERT INTO "schema_versions" VALUES(3,1);
INSERT INTO "schema_versions" VALUES(4,4);
INSERT INTO "schema_versions" VALUES(5,5);
INSERT INTO "schema_versions" VALUES(6,6);
INSERT INTO "schema_versions" VALUES(7,7);
INSERT INTO "schema_versions" VALUES(8,7);
INSERT INTO "schema_versions" VALUES(9,7);
INSERT INTO "schema_versions" VALUES(10,7);
INSERT INTO "schema_versions" VALUES(11,7);
INSERT INTO "schema_versions" VALUES(12,7);
INSERT INTO "schema_versions" VALUES(13,7);
CREATE TABLE secrets (realm text NOT NULL, name text NOT NULL, proof text NOT NULL, PRIMARY KEY (realm, name))
            WITHOUT ROWID;
INSERT INTO "secrets" VALUES('main','binding b1','binding:YjE:88ffc79c641419f634de6be5fe3bea43');
INSERT INTO "secrets" VALUES('main','pepper p1','pepper:cDE:0989a17e6546ef24a74a5f38e441a493');
CREATE TABLE sessions (realm text NOT NULL, id text NOT NULL, handle blob NOT NULL, user_id text NOT NULL,
            auth_time bigint NOT NULL, amr text NOT NULL, created bigint NOT NULL, last_seen bigint NOT NULL,
            expires bigint NOT NULL, agent text NOT NULL, address text NOT NULL, ended_at bigint,
            PRIMARY KEY (realm, id)) WITHOUT ROWID;
INSERT INTO "sessions" VALUES('main','01k8hobof3lmo66nqgfdgkd356',X'36BB4EF67751303D104B6A7A233E1837C2ABE715F7CB1599BCD2DC426406AB37','ls7eZAgAVe28pBC5_WmsmA',1795892306403,'["pwd"]',1795892306403,1795892306403,1798484306403,'','127.0.0.1',NULL);
CREATE TABLE setup_offers (realm text NOT NULL, link blob NOT NULL, expires bigint NOT NULL,
            PRIMARY KEY (realm, link)) WITHOUT ROWID;
INSERT INTO "setup_offers" VALUES('main',X'746041BA2C9A8837EC61A7DD3D584BBCD0A2A4D1F7A9860269D07D5F7483301A',1795894103719);
CREATE TABLE signing_keys (realm text NOT NULL, kid text NOT NULL, alg text NOT NULL, public text NOT NULL,
            sealed blob NOT NULL, created bigint NOT NULL, active_from bigint NOT NULL, publish_until bigint,
            revoked_at bigint, PRIMARY KEY (realm, kid)) WITHOUT ROWID;
INSERT INTO "signing_keys" VALUES('main','6CEDR0ywRCiIqrmEl4YOIw','RS256','{"kty":"RSA","n":"rPSm7OZvd6gNmTnK6SC2b30AtU4yPAyNxzG3TKI14DQqcYYMa6gB4yiKJBhxR6vCdNhNCnFdNupQOF5TNU7GUnN-0ewBCDzpbwXXqhpwME4Px_8TXrdEGCFaq6Mp_z4Z5I2riEk0sWtYzlG_GHX2_G1S_yg3fAOCv6ovApZgK1bHK4seNcyhbXF9SICkCKkG0-JPQtDMCukxLiarJjh-T2Y9nkD6OeQsEzsG7W9nRLYavcI3lXMU2XbbwSOAyuIorJIfyLU12mOrjWPLLhmvnMbW1oSWdWvFvntX1aUR4e6pBq7E8y0KZi4blfhCMKWTXIK4JMqnIpjWKcXu9-kZ_w","e":"AQAB","use":"sig","alg":"RS256","kid":"6CEDR0ywRCiIqrmEl4YOIw"}',X'3290E710A0AF087D6655843BB23FFBCCE35DCB31EF55B231F6EA6BFDAE420C22C4F4FE7ABB1D8F0582484B6414C3F20A53633667276110E296AF7D0B8DF44E7A454C67C205FFB9619FCAC203332B30E5EA6AC309A580A21BD2E45CEED19C34D5F84B3D01F51CE9D87F5D29B6F8B468E4E326C8E90180933091D8E7B2C91FDB70DE89BB769EC62B69DAEFA967644BB1048A7924DE6A32E662B9ADB18173FA9E7CF2CDD850BA1AE1881B45B6F10F4B5BCD9306EA3A66780344902AA293B4DAF674DA0093220F7EF7244A637D710352BAAEAA5E00B94C636BDD819A514BF79EF0F0233A123CD6D9BDAE49B08ACA50DF43B76E439CE078968679C599BF846C0F3A33B342591A7D6A5D8411ED92244FCE0DCA3146BCA0E627531FE0BE6C49C4FDEC5DA10381A03A28A001592F84CE23BBFD32A4E10680D8F0DABBEB08FA78FA9FF2B60B50910C8DF43A6364B5F2AF596E14AD74C5729FE07C13754541CD98226AF005F73A941B8F6DF1C403FE05FEFB5175807A55015AC9359D23AFC9F7658136B756D40FF5B0F59D032DB0FAD25B2C85BDABD296F57519B974068F680FD68E45BCABEEEDFF83FC08F649D186217D733BBA44E24866E283F6D775089AA651D537C35803C576B49F39DBEEE6644A9057339F602C28E6890CB4994BD9F092577C4DF3AF86D8709A221985FE1FFF023543B49808DC91936C2F8E5EA6B96523682DF4EAFA837B5806CFE284318E8859EB8F7C7A2FB499DCE5740CED1D44622F92F4DDA251DB764A07446EF64C661D977E0797DF0503CE1A27FE640CFD32E39E70488F581FAA1CBBC68D26FEC51E75A02AD6090BED07FAB3509E0DDD4254A85989B3BBAC0F72B6210DB4609DEA0E08F19C1E871DF9F0F07BC6F3DC5A5E04EB2100E82AA2CA9AC169DC067E71816689C0EFBFF4B3AD049E9D4A49447F1ED32EE5B4A0564889E20B813C574544559B795F01B20A0C92702C6617D8864CA46A33E55395F085FFC9DEA61458A22B6C8BB0F6E37556D16056E402DB1194BC0C5BB1A49435915A1E063D0108302E7A94C1EB0B7978C1D0E6676964D13CC7FF0EC0B280D1A1E4258D3D95D1DD9556518F24AFF58AB4D026C1F789298221E99E7BB2EB26F8949A3978324A0CCE36C99C4580FE5E90C8A3B87FC7AFACB6EC2E7A61CD0A651CBA77711CFFB592DC9EFA2A12E8538A6C967B195782C77EBB40A3FCE347CB5C5081422B396EE920A2275970F82C627D514E5596E6F5729FC55C86645C3A480D5EEA026E6D3522B0D984DDE36E2D687DBD97B4D473527FB08B84809169A30479E6AF4572415698502E654A8E491402688AE96BE011A237646E30B27964DB4C329D05A5D4739A04664A2B8D813A92FBBBAB94758ABA24C7DF78EDEA85DCE00229DC432D74EA58954FCEAD994F19815EFD71B0F504784A12C774359D76CC56E7472A39EB1C88DAB90ED21C6FC9F60801DB86110C46D7D7DE18A0944840BD515F547EFC12B2B2512CE952C4F2B548150A9354AADDD5E8DC7EA13C4F8EB9015733EF51F5D8F9B8F1429F2B944F046AFE26C5D6347ECD46FE9894A467C6178924A05E2D19432C1298378E6F3F41EE23C2F1F17F8396530D0C4BCCDC9712AB353237DCCCFD01CCB1D6C408CE46C59696401AD33D89DEFFB1AA3F82420FB16E0565FC41A03ED8048FA15212B93CCE8E7426DA601B9846033D1C81F953133F8D5233087ABD6DBB8A627FF91F81E98B42112ED797D2ABBBDB51F05F14A163C6D09D4AA0E017',1795892303607,1795892303714,NULL,NULL);
INSERT INTO "signing_keys" VALUES('main','dCmvALHcNjme0pa9v92dyw','ES256','{"kty":"EC","crv":"P-256","x":"JOX5PWuczIl4WS_y5CLCQYpgElyB3Z7ZfGDLbS-MizY","y":"2HOzmOOzdM2TsZOSi1GR1JC36oXE5t_quKjOFgBVb1M","use":"sig","alg":"ES256","kid":"dCmvALHcNjme0pa9v92dyw"}',X'42CF8B984D9BF09155E64A34E435E93BB546A0801CC8EC55B8C17D5C7256E563453C7A4E21A63A1091A9EDBE78D322E9C3F7A34537ECE8AC324B781876A86AB7C05C94D986E0EE13AED5F60AFE10BA0EECBF7D3F91060FD4B55366EADE32CE3DA9C1ECEBAE3B4617921F61D77ACA00FEBF03B9E365FAC03CF2AC339C3A01DED5BCD9E067E9DC154AE4D6100C632622B5CFA6DA1E02A2D5809023CE44DFE8D0291B0F5C37304F',1795892303607,1795892303714,NULL,NULL);
INSERT INTO "signing_keys" VALUES('main','peYlRASsr9DrpMxLXoAdRw','EdDSA','{"kty":"OKP","crv":"Ed25519","x":"6YvR5HaRdSsnus3ruqO4Stzj9Bz2kyzGBtGrOCdbtaw","use":"sig","alg":"EdDSA","kid":"peYlRASsr9DrpMxLXoAdRw"}',X'E236507C8F6C2BBBBC858B4C8ADF9883AAB66D0A9BCB0982D0B825E0BE019AC5ED5C0CB406F3E26E041B927424C0EE274E49C461A738219F5A8D5B644250B5FFE6D9B3EE319241A000B4B016',1795892303607,1795892303714,NULL,NULL);
CREATE TABLE strangers (realm text NOT NULL, minute bigint NOT NULL, address text NOT NULL,
            count bigint NOT NULL, PRIMARY KEY (realm, minute, address)) WITHOUT ROWID;
INSERT INTO "strangers" VALUES('main',29931538,'127.0.0.1',1);
CREATE TABLE user_groups (realm text NOT NULL, id text NOT NULL, name text NOT NULL,
            PRIMARY KEY (realm, id), UNIQUE (realm, name)) WITHOUT ROWID;
INSERT INTO "user_groups" VALUES('main','-8nUgUvwmz4nio9-XJegrw','staff');
CREATE TABLE users (realm text NOT NULL, id text NOT NULL, username text NOT NULL, email text,
            email_verified bigint NOT NULL, profile text NOT NULL, password text, role text NOT NULL,
            disabled_at bigint, created bigint NOT NULL, updated bigint NOT NULL,
            PRIMARY KEY (realm, id)) WITHOUT ROWID;
INSERT INTO "users" VALUES('main','-IUKU97aNSYST1as9yupAw','bob','bob@example.test',1,'{}','$pv1$m=19456,t=2,p=1,keyid=cDE,bindid=YjE$yGxsAPHF2Lyfsv9JeBWf9Q$fZDkgYnZxwRa5QC/DtYO7rayRa9Og5CMotcy2xyqCnQ','member',NULL,1795892305941,1795892305941);
INSERT INTO "users" VALUES('main','bQLLFydqtvB-FXFzNArEPg','cleo','cleo@example.test',1,'{}','$pbkdf2-sha256$i=1000,l=32$c2FsdHNhbHQ$x74/eLoFuG1b9SwCoUbGr8vyg2cKlbteE/sweaLyNOQ','member',NULL,1795892304230,1795892304230);
INSERT INTO "users" VALUES('main','ls7eZAgAVe28pBC5_WmsmA','ada','ada@example.test',1,'{"locale":"en-GB","name":"Ada of version 0.1"}','$pv1$m=19456,t=2,p=1,keyid=cDE,bindid=YjE$uyLPCbvBASaPHSkZgsGfUw$JviVfi7cAhA6iubgZ5xe8vaEy3DypF9/rrRysK/nKFw','owner',NULL,1795892304069,1795892306542);
INSERT INTO "users" VALUES('main','vjLHYHZvuuPLS3KywxYJNg','dora',NULL,0,'{}','$argon2id$v=19$m=19456,t=2,p=1$0BGIv/J4v6ESZRgNlUf17g$5Q3PaocLTp87CBQdxclU1we12J4sPQOvHV5mS1oCPSc','member',1795892304613,1795892304564,1795892304613);
CREATE TABLE worker_tokens (realm text NOT NULL, token blob NOT NULL, expires bigint NOT NULL,
            PRIMARY KEY (realm, token)) WITHOUT ROWID;
INSERT INTO "worker_tokens" VALUES('main',X'8A20B8ABDFA31480BFED78CAD77F77070165EF384DAA64CD7D16093852CB32BE',1795892905969);
CREATE TABLE workers (realm text NOT NULL, worker_key blob NOT NULL, name text NOT NULL,
            enrolled bigint NOT NULL, address text NOT NULL, quarantined_at bigint, why text,
            PRIMARY KEY (realm, worker_key), UNIQUE (realm, name)) WITHOUT ROWID;
INSERT INTO "workers" VALUES('main',X'D7ADFB258B8DE2F28308C0A9497C295A03C8EA69E0A78F7FD1D2411BDF89002D','made-up-worker',1795892306286,'127.0.0.1',NULL,NULL);
CREATE INDEX logins_of_user ON logins (realm, user_id);
CREATE INDEX members_of_group ON members (realm, group_id);
CREATE INDEX sessions_of_user ON sessions (realm, user_id);
CREATE INDEX families_of_user ON families (realm, user_id);
CREATE INDEX devices_by_age ON devices (realm, expires);
CREATE INDEX opaque_tokens_by_age ON opaque_tokens (realm, expires);
CREATE INDEX revoked_tokens_by_age ON revoked_tokens (realm, expires);
CREATE INDEX assertions_by_age ON assertions (realm, expires);
CREATE INDEX counters_by_age ON counters (realm, expires);
CREATE INDEX events_of_block ON events (realm, block, id);
CREATE INDEX families_living ON families (realm, user_id, revoked_at);
CREATE INDEX sessions_living ON sessions (realm, user_id, ended_at);
CREATE INDEX consents_of_client ON consents (realm, client_id, user_id);
